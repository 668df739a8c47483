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

/** The cells of a notebook, one after another; empty while it is being written. */
function sources(text) {
  try {
    const { cells } = JSON.parse(text);
    return cells.map(({ source }) => [source].flat().join("")).join("\n");
  } catch {
    return "";
  }
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
  await editor.until(() => sources(editor.onDisk(name)), "a, b = 1, 2\ntotal = a + b");
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

test("marks are filled by the bulb as one step to undo, and a refusal is said", async () => {
  const text = "def add(a, b):\n    return ___\n";
  await editor.open("holes.py", text);
  await editor.until(() => editor.status(), /^dg-tiny( ·|$)/);
  await editor.goto(2, 12);
  await fill();
  const filled = text.replace("___", "a + b");
  await editor.until(() => editor.text(), /return a \+ b/);
  assert.equal(await editor.saved("holes.py"), filled);
  await editor.press("Control+z");
  assert.equal(await editor.saved("holes.py"), text);
  editor.script({ lines: [], edits: {} });
  await fill();
  await editor.page.locator(".notification-toast", { hasText: "nothing" }).waitFor();
  assert.equal(editor.onDisk("holes.py"), text);
});

/** Choose the action of the bulb. */
async function fill() {
  await (await editor.bulb("Fill the holes")).click();
}

function isSomething(text) {
  return text !== "";
}
