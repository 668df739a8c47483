// Collects every message that the sources translate into l10n/bundle.l10n.json.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { generated, ROOT, read } from "./project.mjs";

const CALL = /\bt\(\s*("(?:[^"\\]|\\.)*")/g;

const sources = readdirSync(join(ROOT, "src"), { recursive: true })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => read(join("src", name)));
const messages = sources.flatMap((source) =>
  [...source.matchAll(CALL)].map(([, literal]) => JSON.parse(literal)),
);
const bundle = Object.fromEntries([...new Set(messages)].sort().map((text) => [text, text]));
generated("l10n/bundle.l10n.json", `${JSON.stringify(bundle, null, 2)}\n`);

// The manifest's own texts: each that is named exists, and none is left over.
const manifest = read("package.json");
const named = new Set([...manifest.matchAll(/"%([^%"]+)%"/g)].map(([, key]) => key));
const known = new Set(Object.keys(JSON.parse(read("package.nls.json"))));
for (const key of [...named].filter((key) => !known.has(key))) fail(`lacks "${key}"`);
for (const key of [...known].filter((key) => !named.has(key))) fail(`has "${key}" for nobody`);

function fail(what) {
  console.error(`package.nls.json ${what}`);
  process.exitCode = 1;
}
