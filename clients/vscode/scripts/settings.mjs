// Writes the server's settings into package.json from the schema that the server itself checks.
// Needs a Python with the server: $PYTHON, else the repository's .venv.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "./project.mjs";

const repositoryPython = join(REPOSITORY, ".venv", "bin", "python");
const python = process.env.PYTHON ?? (existsSync(repositoryPython) ? repositoryPython : "python3");
const script = join(REPOSITORY, "scripts", "generate.py");
try {
  execFileSync(python, [script, ...process.argv.slice(2)], { stdio: "inherit" });
} catch {
  process.exitCode = 1;
}
