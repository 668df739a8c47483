// Next edits where another extension says that a name is unknown since the last edit.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Editor } from "./editor.mjs";
import { NextEdits, NOTHING } from "./next_edits.mjs";
import { installLinter } from "./others.mjs";

const FILE = "names.lua";
const TEXT = "let rows = 1\n\nnotes\n\nshow rows\n";
/** What would be proposed comes within this time: the other tests have theirs sooner. */
const ANSWER_MS = 2500;

let editor;
let edits;
before(async () => {
  editor = await Editor.start({
    script: { lines: [], edits: {} },
    settings: { "dgLsp.languages": ["*"], "dgLsp.nextEdit": true, "editor.wordBasedSuggestions": "off" },
    beside: installLinter,
  });
  edits = await NextEdits.in(editor);
  await editor.open(FILE, TEXT);
  await editor.until(() => editor.status(), /^dg-tiny/);
});
after(() => editor?.close());

/** Write over the name in a line. */
async function rename(line, from, to) {
  await editor.goto(line, 5);
  await editor.press(...Array(from.length).fill("Shift+ArrowRight"));
  await editor.type(to);
}

test("what is not said to be unknown is left alone", async () => {
  await editor.goto(3, 6);
  await editor.type(" on it");
  const isSomething = (found) => JSON.stringify(found) !== JSON.stringify(NOTHING);
  assert.equal(await editor.reaches(() => edits.drawn(), isSomething, ANSWER_MS), false);
});

test("a name that is unknown since it was changed elsewhere is the next edit", async () => {
  await rename(1, "rows", "item");
  await edits.untilDrawn({ struck: "rows", comes: ["item"], marks: [5] });
  await editor.press("Tab", "Tab");
  await edits.untilAt(5, 10);
  const whole = TEXT.replaceAll("rows", "item").replace("notes", "notes on it");
  assert.equal(await editor.saved(FILE), whole);
  await edits.untilDrawn(NOTHING);
});
