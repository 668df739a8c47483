// Bundles the extension into dist/extension.js; --tests bundles the unit tests, --watch rebuilds.
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { context } from "esbuild";
import { ROOT } from "./project.mjs";

const shared = {
  absWorkingDir: ROOT,
  bundle: true,
  platform: "node",
  target: "node20",
  logLevel: "warning",
};

const extension = {
  ...shared,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.js",
  format: "cjs",
  external: ["vscode"],
  // Some packages of the client library are UMD whose main file hides its requires from bundlers.
  mainFields: ["module", "main"],
  minify: !process.argv.includes("--watch"),
  sourcemap: process.argv.includes("--watch"),
  metafile: true,
};

const tests = {
  ...shared,
  entryPoints: readdirSync(join(ROOT, "test"))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join("test", name)),
  outdir: "dist/test",
  outExtension: { ".js": ".mjs" },
  format: "esm",
};

const testing = process.argv.includes("--tests");
if (testing) rmSync(join(ROOT, "dist/test"), { recursive: true, force: true });
const building = await context(testing ? tests : extension);
if (process.argv.includes("--watch")) {
  await building.watch();
} else {
  const { metafile } = await building.rebuild();
  if (metafile) writeFileSync(join(ROOT, "dist/meta.json"), JSON.stringify(metafile));
  await building.dispose();
}
