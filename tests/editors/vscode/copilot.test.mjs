// Beside GitHub Copilot: it is said once, both offers stand in one list, and Tab takes what is shown.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Editor } from "./editor.mjs";
import { NextEdits, NOTHING, SHOWN } from "./next_edits.mjs";
import { installCopilot } from "./others.mjs";

const FILE = "example.py";
const OURS = "    return a + b";
const THEIRS = "    return a * b";
/** A line that only Copilot knows. */
const ONLY_THEIRS = "    b += 100";
const HEAD = "def add(a, b):\n";
const ENABLE = "github.copilot.enable";
/** What would be said is said within this time: the other tests have theirs sooner. */
const ANSWER_MS = 2500;

let editor;
before(async () => {
  editor = await Editor.start({
    script: { lines: [OURS], edits: {} },
    settings: {
      "chat.disableAIFeatures": false,
      // Newer editors bring Copilot along, and then do not run the one that people install.
      "chat.extensionUnification.enabled": false,
      [ENABLE]: { "*": false },
      "editor.wordBasedSuggestions": "off",
    },
    beside: (folder) => installCopilot(folder, [THEIRS, ONLY_THEIRS]),
  });
  await editor.open(FILE, `${HEAD}    \n`);
  await editor.until(() => editor.status(), /^dg-tiny/);
});
after(() => editor?.close());

const notice = () =>
  editor.page.locator(".notification-toast", { hasText: "GitHub Copilot is active as well" });
const isOffered = (ghost) => ghost === "return a + b" || ghost === "return a * b";

let places = 0;
/** Ask at a place of its own: where a suggestion was passed over it is not offered again. */
async function anew() {
  places += 1;
  await editor.press("Escape", "Control+a", "Delete");
  const head = HEAD.replace("add", `add_${places}`);
  await editor.type(head);
  return head;
}

/** Ask until ours answers: it is up a little later than the editor. */
async function untilSuggested() {
  await editor.until(async () => {
    await anew();
    return editor.reaches(() => editor.status(), /^dg-tiny · \d+ ms$/, 4000);
  }, true);
}

test("as long as Copilot completes nothing, nothing is said of it", async () => {
  await untilSuggested();
  await editor.until(() => editor.ghost(), isOffered);
  assert.equal(await editor.reaches(() => notice().count(), 1, ANSWER_MS), false);
});

test("when it does, the first suggestion comes with a notice, which can pause ours", async () => {
  await editor.configure({ [ENABLE]: { "*": true } });
  // A setting is known a little later than it is saved, and what came before has no notice.
  await editor.until(async () => {
    await anew();
    return editor.reaches(() => notice().count(), 1, ANSWER_MS);
  }, true);
  await editor.shot("copilot");
  await notice().locator(".monaco-button", { hasText: "Pause dg-lsp" }).click();
  await editor.until(() => editor.status(), "dg-tiny: paused");
  await editor.focus();
  await anew();
  await editor.untilGhost("return a * b");
  await editor.press("Alt+]");
  assert.equal(await editor.reaches(() => editor.ghost(), "return a + b", ANSWER_MS), false);
  await editor.choose("Resume suggestions");
  await editor.until(() => editor.status(), /^dg-tiny/);
});

/** The ghost text that stands there after a key, which may still be drawing another one. */
async function settledGhost() {
  for (let before; ; ) {
    const now = await editor.ghost();
    if (now === before) return now;
    before = now;
    await delay(200);
  }
}

test("both stand in one list, and Tab takes the one that is shown, once", async () => {
  for (const turns of [0, 1]) {
    const head = await anew();
    // Until both are there: the keys go through them.
    const seen = new Set();
    await editor.until(async () => {
      await editor.press("Alt+]");
      await editor.until(() => editor.ghost(), isOffered);
      seen.add(await editor.ghost());
      return seen.size;
    }, 2);
    const shown = await settledGhost();
    const other = [...seen].find((ghost) => ghost !== shown);
    if (turns > 0) {
      await editor.until(async () => {
        await editor.press("Alt+]");
        return settledGhost();
      }, other);
    }
    await editor.press("Tab");
    await editor.untilGhost("");
    const taken = turns > 0 ? other : shown;
    assert.equal(await editor.saved(FILE), `${head}    ${taken}`);
  }
});

test("Tab takes Copilot's text before it goes to a next edit of ours", async () => {
  await editor.configure({ [ENABLE]: { "*": true }, "dgLsp.nextEdit": true });
  const edits = await NextEdits.in(editor);
  const { renamed } = await edits.rename();
  await edits.untilDrawn(SHOWN);
  await editor.goto(3, 11);
  await editor.type("\nb +");
  await editor.untilGhost("= 100");
  await editor.press("Tab");
  await editor.untilGhost("");
  assert.equal(await editor.saved(FILE), renamed.replace("1\n", "1\n    b += 100\n"));
  await edits.untilDrawn(SHOWN);
  await editor.press("Escape");
  await edits.untilDrawn(NOTHING);
});

test("in the next window it is not said again", async () => {
  await editor.open(FILE, `${HEAD}    \n`);
  await editor.until(() => editor.status(), /^dg-tiny/);
  await untilSuggested();
  await editor.until(() => editor.ghost(), isOffered);
  assert.equal(await editor.reaches(() => notice().count(), 1, ANSWER_MS), false);
});
