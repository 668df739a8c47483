// Stand-ins for extensions of others: their names, conditions and keys, and a note of what reached them.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * A key of theirs, and its place in their list: among extensions the later place has the key.
 * `mode` is the one that they are in afterwards.
 */
const at = (place, key, when, mode) => ({ place, key, when, mode });

/** VSCodeVim 1.15: its context keys, and its Escape and Tab. */
export const VIM = {
  publisher: "vscodevim",
  name: "vim",
  active: "vim.active",
  mode: "vim.mode",
  modes: { normal: "Normal", insert: "Insert" },
  keys: [
    at(0, "escape", "editorTextFocus && vim.active && !inDebugRepl", "normal"),
    at(6, "tab", "editorFocus && vim.active && vim.mode != 'Insert' && !inDebugRepl"),
  ],
};

/** vscode-neovim 1.18: likewise. */
export const NEOVIM = {
  publisher: "asvetliakov",
  name: "vscode-neovim",
  active: "neovim.init",
  mode: "neovim.mode",
  modes: { normal: "normal", insert: "insert" },
  keys: [
    at(4, "escape", "editorTextFocus && neovim.init && neovim.mode == normal", "normal"),
    at(5, "escape", "editorTextFocus && neovim.init && neovim.mode != normal", "normal"),
    at(10, "tab", "neovim.init && editorTextFocus && neovim.mode != insert"),
  ],
};

/** Put an extension with modes into VS Code's folder; it is off until one of its commands is run. */
export function installModes(folder, { publisher, name, active, mode, modes, keys }) {
  const own = keys.map(({ mode: then, ...key }) => ({
    ...key,
    command: `${name}.at${key.place}`,
    then: modes[then],
  }));
  const last = Math.max(...own.map(({ place }) => place));
  const keybindings = Array.from({ length: last + 1 }, (_, place) => {
    const { key = "ctrl+alt+f19", when = "false", command = `${name}.nothing` } =
      own.find((each) => each.place === place) ?? {};
    return { key, when, command };
  });
  const switches = [...Object.entries(modes), ["off"]].map(([what, to]) => ({
    command: `${name}.${what}`,
    title: `${publisher}: ${what}`,
    to,
  }));
  const commands = switches.map(({ command, title }) => ({ command, title }));
  const main = `
  const set = (key, value) => commands.executeCommand("setContext", key, value);
  const enter = async (to) => {
    await set(${JSON.stringify(active)}, to !== undefined);
    // Switched off, they may leave it as it was.
    if (to !== undefined) await set(${JSON.stringify(mode)}, to);
    note(to === undefined ? "off" : "mode " + to);
  };
  for (const { command, to } of ${JSON.stringify(switches)}) {
    commands.registerCommand(command, () => enter(to));
  }
  for (const { command, key, then } of ${JSON.stringify(own)}) {
    commands.registerCommand(command, async () => {
      note(key);
      if (then !== undefined) await enter(then);
    });
  }`;
  write(folder, { publisher, name, contributes: { commands, keybindings } }, main);
}

/** GitHub Copilot: its switch, and a completion of its own for each line that it knows. */
export function installCopilot(folder, lines) {
  const enable = { type: "object", default: { "*": true } };
  const configuration = { properties: { "github.copilot.enable": enable } };
  const main = `
  const provideInlineCompletionItems = (document, position) => {
    const before = document.lineAt(position).text.slice(0, position.character);
    return ${JSON.stringify(lines)}
      .filter((line) => line.startsWith(before) && line !== before)
      .map((line) => new InlineCompletionItem(line.slice(before.length)));
  };
  languages.registerInlineCompletionItemProvider("python", { provideInlineCompletionItems });`;
  write(folder, { publisher: "GitHub", name: "copilot", contributes: { configuration } }, main);
}

/** A linter of a language that nobody has, in which `show NAME` wants a line `let NAME = ...`. */
export function installLinter(folder) {
  const main = `
  const { Diagnostic, DiagnosticSeverity, Range, workspace } = require("vscode");
  const found = languages.createDiagnosticCollection("names");
  const look = (document) => {
    const lines = document.getText().split(/\\r?\\n/);
    const known = new Set(lines.flatMap((line) => /^let (\\w+) = /.exec(line)?.[1] ?? []));
    found.set(document.uri, lines.flatMap((line, at) => {
      const [, name] = /^show (\\w+)$/.exec(line) ?? [];
      if (name === undefined || known.has(name)) return [];
      const range = new Range(at, 5, at, 5 + name.length);
      return [new Diagnostic(range, "unknown name '" + name + "'", DiagnosticSeverity.Error)];
    }));
  };
  workspace.onDidOpenTextDocument(look);
  // Later than the next edit is asked for.
  workspace.onDidChangeTextDocument(({ document }) => setTimeout(() => look(document), 800));`;
  write(folder, { publisher: "dg-lsp-tests", name: "linter", contributes: {} }, main);
}

/** How many notes of an extension were looked at, by their file; more may come at any moment. */
const seen = new Map();

/** What reached an extension with modes since the last look, oldest first. */
export function reached(home, { name }) {
  const path = join(home, `${name}.txt`);
  if (!existsSync(path)) return [];
  // What stands behind the last line break is not written to its end yet.
  const lines = readFileSync(path, "utf8").split("\n").slice(0, -1);
  const fresh = lines.slice(seen.get(path) ?? 0);
  seen.set(path, lines.length);
  return fresh;
}

function write(folder, { publisher, name, contributes }, main) {
  const version = "99.0.0";
  const own = join(folder, `${publisher}.${name}-${version}`);
  mkdirSync(own, { recursive: true });
  const manifest = {
    ...{ publisher, name, version, contributes },
    engines: { vscode: "^1.90.0" },
    activationEvents: ["*"],
    main: "./main.js",
  };
  writeFileSync(join(own, "package.json"), JSON.stringify(manifest));
  const code = `const { commands, languages, InlineCompletionItem } = require("vscode");
const { appendFileSync } = require("node:fs");
const { homedir } = require("node:os");
const { join } = require("node:path");
const notes = join(homedir(), ${JSON.stringify(`${name}.txt`)});
const note = (line) => appendFileSync(notes, line + "\\n");
exports.activate = () => {${main}
};
`;
  writeFileSync(join(own, "main.js"), code);
}
