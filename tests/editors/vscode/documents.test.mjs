// Which documents get suggestions: cells of a notebook do, files that are excluded do not.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { Editor } from "./editor.mjs";

const LINES = ["total = a + b", "TOKEN=alpha", "    return a + b"];
const NOTEBOOK = {
  cells: [cell("a, b = 1, 2"), cell("")],
  metadata: { language_info: { name: "python" } },
  nbformat: 4,
  nbformat_minor: 4,
};
/** No answer that would come takes longer: the other tests have theirs within it. */
const ANSWER_MS = 3000;

let editor;
before(async () => {
  editor = await Editor.start({
    script: { lines: LINES, edits: {} },
    // Every language: an excluded file is held back by the server, not by the extension.
    settings: {
      "dgLsp.languages": ["*"],
      "workbench.editorAssociations": { "*.ipynb": "jupyter-notebook" },
    },
  });
});
beforeEach(() => editor.forgetPrompts());
after(() => editor?.close());

function cell(source) {
  return { cell_type: "code", execution_count: null, metadata: {}, outputs: [], source };
}

test("a cell of a notebook gets ghost text, and the model is shown the cell before", async () => {
  const name = "figures.ipynb";
  await editor.openNotebook(name, JSON.stringify(NOTEBOOK), 2);
  await editor.type("tot");
  await editor.wake("al = a + b");
  await editor.shot("notebook");
  assert.match(editor.prompts(), /a, b = 1, 2/);
  await editor.press("Tab");
  await editor.untilGhost("");
  await editor.press("Control+s");
  await editor.until(
    () => JSON.parse(editor.onDisk(name)).cells.map(({ source }) => [source].flat().join("")),
    (sources) => sources.join("\n") === "a, b = 1, 2\ntotal = a + b",
  );
});

test("an excluded .env gets none, the status says why, and the model never sees it", async () => {
  await editor.open(".env", "SECRET=hunter2\nTOKEN=\n");
  await editor.until(() => editor.status(), /^dg-tiny/);
  await editor.goto(2, 7);
  await editor.until(async () => {
    await editor.press("x", "Backspace");
    return editor.reaches(() => editor.status(), "dg-tiny: off here", ANSWER_MS);
  }, true);
  assert.match(await editor.sentence(), /`\.env` is excluded by the built-in list/);
  assert.equal(await editor.reaches(() => editor.ghost(), isSomething, ANSWER_MS), false);
  await editor.shot("excluded");
  assert.equal(editor.prompts(), "");
});

test("in the next file all is as before", async () => {
  await editor.open("example.py", "def add(a, b):\n    \n");
  await editor.goto(2, 5);
  await editor.wake("return a + b");
  assert.match(await editor.status(), /^dg-tiny · \d+ ms$/);
  assert.doesNotMatch(editor.prompts(), /hunter2/);
});

function isSomething(text) {
  return text !== "";
}
