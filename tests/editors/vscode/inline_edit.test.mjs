// Instructed edits in VS Code: shown first, then accepted as one step, discarded, or asked anew.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Editor } from "./editor.mjs";

const FILE = "totals.py";
const TEXT = `"""Sums of prices."""


def total(prices):
    result = 0
    for price in prices:
        result = result + price
    return result


def mean(prices):
    return total(prices) / len(prices)
`;
const SHORTER = "add with +=";
const RENAMED = "call it sum";
const EDITS = {
  [SHORTER]: [["result = result + price", "result += price"]],
  [RENAMED]: [["result", "sum"]],
};

let editor;
before(async () => {
  editor = await Editor.start({ script: { lines: [], edits: EDITS } });
  await editor.open(FILE, TEXT);
  await editor.until(() => editor.status(), /^dg-tiny/);
});
after(() => editor?.close());

/** Select the body of total() and ask. */
async function ask(instruction) {
  await editor.goto(5, 1);
  await editor.press("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown");
  await editor.press("Control+Alt+e");
  await answer(instruction);
}

async function answer(instruction) {
  const box = editor.page.locator(".quick-input-widget input");
  await box.waitFor();
  await box.fill(instruction);
  await editor.press("Enter");
  await editor.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
}

const lens = (name) => editor.page.locator(".codelens-decoration a", { hasText: name });

/** What the decorations put beside the lines. */
function beside() {
  return editor.page.evaluate(() => {
    const found = [];
    for (const span of document.querySelectorAll(".editor-instance .view-line span")) {
      const { content } = getComputedStyle(span, "::after");
      if (content !== "none" && content !== "normal") {
        found.push(content.slice(1, -1).replaceAll("\u00a0", " ").trimEnd());
      }
    }
    return found;
  });
}

async function proposed(line) {
  await lens("Accept").waitFor();
  await editor.until(beside, (lines) => lines.some((shown) => shown.trim() === line));
}

async function undoAll() {
  await editor.press(...Array(12).fill("Control+z"));
  assert.equal(await editor.saved(FILE), TEXT);
}

async function unchanged() {
  assert.equal(editor.onDisk(FILE), TEXT);
  assert.equal(await editor.page.locator(".tab.active.dirty").count(), 0);
}

test("the proposal is shown and nothing is written", async () => {
  await ask(SHORTER);
  await proposed("result += price");
  await editor.shot("inline-edit");
  await unchanged();
});

test("while the model works the drafts are shown, and Escape stops it", async () => {
  await editor.press("Escape");
  editor.script({ lines: [], edits: EDITS, draft_ms: 1500 });
  const working = editor.page.locator(".codelens-decoration", { hasText: "Editing" });
  await ask(SHORTER);
  await working.waitFor();
  await editor.until(() => editor.status(), "dg-tiny: editing");
  const streams = await editor.reaches(beside, (lines) => lines.length > 0, 1200);
  await editor.shot("inline-edit-draft");
  await editor.press("Escape");
  await working.waitFor({ state: "detached" });
  assert.deepEqual(await beside(), []);
  await unchanged();
  editor.script({ lines: [], edits: EDITS });
  await ask(SHORTER);
  await proposed("result += price");
  assert.ok(streams, "no draft was seen");
});

test("discarded, it leaves the same bytes", async () => {
  await editor.press("Escape");
  await lens("Accept").waitFor({ state: "detached" });
  assert.deepEqual(await beside(), []);
  await unchanged();
});

test("accepted, it is one step to undo", async () => {
  await ask(SHORTER);
  await proposed("result += price");
  await editor.press("Control+Enter");
  await lens("Accept").waitFor({ state: "detached" });
  const now = TEXT.replace("result = result + price", "result += price");
  assert.equal(await editor.saved(FILE), now);
  await editor.press("Control+z");
  assert.equal(await editor.saved(FILE), TEXT);
});

test("the lens accepts as well", async () => {
  await ask(RENAMED);
  await proposed("sum = 0");
  await lens("Accept").click();
  await lens("Accept").waitFor({ state: "detached" });
  await editor.focus();
  assert.equal(await editor.saved(FILE), TEXT.replace(/result/g, "sum"));
  await editor.press("Control+z");
  assert.equal(await editor.saved(FILE), TEXT);
});

test("retried, it is another proposal, and the instruction can be changed", async () => {
  await ask(SHORTER);
  await proposed("result += price");
  await editor.press("Control+Shift+Enter");
  const box = editor.page.locator(".quick-input-widget input");
  await box.waitFor();
  assert.equal(await box.inputValue(), SHORTER);
  await answer(RENAMED);
  await proposed("return sum");
  await editor.press("Escape");
  await unchanged();
});

test("typing elsewhere moves it, typing in it ends it", async () => {
  await ask(SHORTER);
  await proposed("result += price");
  await editor.goto(1, 1);
  await editor.type("# prices\n");
  await proposed("result += price");
  await editor.press("Control+Enter");
  await lens("Accept").waitFor({ state: "detached" });
  const now = `# prices\n${TEXT.replace("result = result + price", "result += price")}`;
  assert.equal(await editor.saved(FILE), now);
  await undoAll();
  await ask(SHORTER);
  await lens("Accept").waitFor();
  await editor.goto(6, 5);
  await editor.type("x");
  await lens("Accept").waitFor({ state: "detached" });
  await undoAll();
});

test("the bulb offers it for a selection", async () => {
  await editor.goto(5, 1);
  await editor.press("Shift+ArrowDown");
  await editor.bulb("Edit with instruction");
  await editor.shot("bulb");
  await editor.press("Escape");
});

test("an instruction that changes nothing is answered with a sentence", async () => {
  await ask("do nothing");
  const said = editor.page.locator(".notification-toast", { hasText: "would change nothing" });
  await said.waitFor();
  await editor.shot("edit-of-nothing");
  await unchanged();
});
