import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { delimiter } from "node:path";
import { test } from "node:test";
import {
  buildsFor,
  forLog,
  hasBuilds,
  hasNvidia,
  isNotFound,
  places,
  requirement,
} from "../src/pytorch.ts";

const PATH = ["/usr/bin", "", "/opt/nvidia"].join(delimiter);

for (const [what, there, found] of [
  ["its driver", ["/proc/driver/nvidia/version"], true],
  ["its tool on the path", ["/opt/nvidia/nvidia-smi"], true],
  ["a tool that is not on the path", ["/elsewhere/nvidia-smi"], false],
  ["nothing of it", [], false],
] as [string, string[], boolean][]) {
  test(`with ${what} there is ${found ? "a GPU" : "no GPU"}`, () => {
    assert.equal(
      hasNvidia(PATH, (path) => there.includes(path)),
      found,
    );
  });
}

test("the build that fits the machine comes first", () => {
  assert.deepEqual(buildsFor(false), ["cpu", "cuda"]);
  assert.deepEqual(buildsFor(true), ["cuda", "cpu"]);
});

test("only on Linux there is something to choose", () => {
  assert.deepEqual(["linux", "darwin", "win32"].map(hasBuilds), [true, false, false]);
});

test("the version that pip is asked for is the locked one", () => {
  const lock = readFileSync("../../requirements/torch.txt", "utf8");
  const [, version] = /^torch==(\S+)/m.exec(lock) ?? [];
  assert.equal(requirement("cpu"), `torch==${version}+cpu`);
  assert.equal(requirement("cuda"), `torch!=${version}+cpu`);
});

for (const [place, told] of [
  ["", []],
  ["  ", []],
  ["https://example.org/cpu", ["--extra-index-url", "https://example.org/cpu"]],
  ["file:///wheels/simple", ["--extra-index-url", "file:///wheels/simple"]],
  ["/wheels", ["--find-links", "/wheels"]],
  ["~/wheels", ["--find-links", "/home/me/wheels"]],
] as [string, string[]][]) {
  test(`"${place}" is told to pip as ${JSON.stringify(told)}`, () => {
    assert.deepEqual(places(place, "/home/me"), told);
  });
}

const CONSTRAINED = `
The conflict is caused by:
    The user requested torch==2.13.0+cpu
    The user requested (constraint) torch<=2.14.1
ERROR: Cannot install torch==2.13.0+cpu because these package versions have conflicting dependencies.
ERROR: ResolutionImpossible: for help visit a page`;
const NOT_FOUND = "ERROR: No matching distribution found for torch==2.13.0+cpu";

for (const [what, build, line, is] of [
  ["no such build", "cpu", NOT_FOUND, true],
  ["no such build, and a constraint", "cpu", CONSTRAINED, true],
  ["another package", "cpu", "ERROR: No matching distribution found for rich>=13.9", false],
  ["no other build either", "cuda", NOT_FOUND, false],
  ["a full disk", "cpu", "ERROR: No space left on device", false],
] as const) {
  test(`${what}: ${is ? "another is offered" : "an error like others"}`, () => {
    assert.equal(isNotFound(build, line), is);
  });
}

test("the log has no passwords", () => {
  const words = ["pip", "install", "--extra-index-url", "https://me:secret@example.org/cpu"];
  assert.equal(forLog(words), "pip install --extra-index-url https://***@example.org/cpu");
});
