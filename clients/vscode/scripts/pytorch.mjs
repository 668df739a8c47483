// Writes the locked version of PyTorch, which "Install" names to pip, into src/pytorch.json.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { generated, REPOSITORY } from "./project.mjs";

const lock = readFileSync(join(REPOSITORY, "requirements", "torch.txt"), "utf8");
const [, version] = /^torch==(\S+)/m.exec(lock);
generated("src/pytorch.json", `${JSON.stringify({ version }, null, 2)}\n`);
