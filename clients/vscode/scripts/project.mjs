// Where things are, and how generated files are written or compared.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The extension's folder. */
export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
/** The repository. */
export const REPOSITORY = join(ROOT, "..", "..");

const CHECKING = process.argv.includes("--check");

export function read(name) {
  return readFileSync(join(ROOT, name), "utf8");
}

/** Write a generated file; with --check only compare, and fail when it would change. */
export function generated(name, text) {
  const path = join(ROOT, name);
  const old = existsSync(path) ? readFileSync(path, "utf8") : "";
  if (old === text) return;
  if (CHECKING) {
    console.error(`${relative(REPOSITORY, path)} is out of date; run: npm run generate`);
    process.exitCode = 1;
    return;
  }
  writeFileSync(path, text);
}
