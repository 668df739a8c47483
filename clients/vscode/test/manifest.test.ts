import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

interface Manifest {
  readonly capabilities: {
    readonly untrustedWorkspaces: { readonly restrictedConfigurations: readonly string[] };
  };
  readonly contributes: {
    readonly configuration: readonly {
      readonly properties: Readonly<Record<string, { readonly scope: string }>>;
    }[];
    readonly commands: readonly { readonly command: string }[];
    readonly keybindings: readonly { readonly command: string }[];
  };
}

const { capabilities, contributes }: Manifest = JSON.parse(readFileSync("package.json", "utf8"));
const settings = contributes.configuration.flatMap(({ properties }) => Object.entries(properties));
const restricted = capabilities.untrustedWorkspaces.restrictedConfigurations;

test("what belongs to a machine is never taken from a workspace that is not trusted", () => {
  const ofMachine = settings
    .filter(([, { scope }]) => scope.startsWith("machine"))
    .map(([name]) => name);
  assert.ok(ofMachine.includes("dgLsp.server.packageIndex"));
  assert.deepEqual(
    ofMachine.filter((name) => !restricted.includes(name)),
    [],
  );
});

test("every setting that is restricted and every command that has a key exists", () => {
  const names = new Set(settings.map(([name]) => name));
  assert.deepEqual(
    restricted.filter((name) => !names.has(name)),
    [],
  );
  const commands = new Set(contributes.commands.map(({ command }) => command));
  assert.deepEqual(
    contributes.keybindings.filter(({ command }) => !commands.has(command)),
    [],
  );
});
