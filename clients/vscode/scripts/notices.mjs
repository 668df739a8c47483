// Writes THIRD_PARTY_NOTICES.md: the licence of every package whose code is in the bundle.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { generated, ROOT, read } from "./project.mjs";

const { metafile } = await build({
  absWorkingDir: ROOT,
  entryPoints: ["src/extension.ts"],
  bundle: true,
  platform: "node",
  format: "cjs",
  external: ["vscode"],
  mainFields: ["module", "main"],
  metafile: true,
  write: false,
});
const used = Object.values(metafile.outputs).flatMap(({ inputs }) =>
  Object.entries(inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
    .map(([path]) => /^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]),
);
const parts = [...new Set(used.filter(Boolean))].sort().map((name) => {
  const folder = join("node_modules", name);
  const { version, license } = JSON.parse(read(join(folder, "package.json")));
  const file = readdirSync(join(ROOT, folder)).find((entry) => /^licen[sc]e/i.test(entry));
  const text = file && existsSync(join(ROOT, folder, file)) ? read(join(folder, file)) : license;
  const body = text.replaceAll("\r\n", "\n").trim();
  return `## ${name} ${version}\n\n${license}\n\n\`\`\`text\n${body}\n\`\`\`\n`;
});
const head = "# Third-party notices\n\nThe extension's bundle contains code of these packages.\n";
generated("THIRD_PARTY_NOTICES.md", [head, ...parts].join("\n"));
