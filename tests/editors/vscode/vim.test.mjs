// Beside VSCodeVim and vscode-neovim, whose keys are the same as ours: who has Escape and Tab when.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Editor } from "./editor.mjs";
import { NextEdits, NOTHING, SHOWN } from "./next_edits.mjs";
import { installModes, NEOVIM, reached, VIM } from "./others.mjs";

const FILE = "totals.py";
const LINES = ["    b += 100"];
const INSTRUCTION = "count in steps of two";
const EDITS = { [INSTRUCTION]: [["b += 1", "b += 2"]] };

let editor;
let edits;
before(async () => {
  editor = await Editor.start({
    script: { lines: LINES, edits: EDITS },
    settings: {
      "dgLsp.nextEdit": true,
      "editor.autoIndent": "none",
      "editor.wordBasedSuggestions": "off",
    },
    beside: (folder) => {
      for (const other of [VIM, NEOVIM]) installModes(folder, other);
    },
  });
  edits = await NextEdits.in(editor);
  await editor.open(FILE, "");
  await editor.until(() => editor.status(), /^dg-tiny/);
});
after(() => editor?.close());

const lens = () => editor.page.locator(".codelens-decoration a", { hasText: "Accept" });

for (const other of [VIM, NEOVIM]) {
  const { normal } = other.modes;

  /** Switch the extension to a mode, or off. */
  const enter = async (mode) => {
    reached(editor.home, other);
    await editor.command(`${other.publisher}: ${mode}`);
    await untilReached(mode === "off" ? mode : `mode ${other.modes[mode]}`);
    await editor.focus();
  };

  /** Wait for what the extension gets, of which nothing else may be. */
  const untilReached = async (...lines) => {
    const seen = [];
    await editor.until(() => {
      seen.push(...reached(editor.home, other));
      return seen.join();
    }, lines.join());
  };

  test(`${other.name}, inserting: Tab is the next edit's`, async () => {
    await enter("insert");
    const { once } = await edits.rename();
    await edits.untilDrawn(SHOWN);
    await editor.press("Tab", "Tab");
    await edits.untilAt(2, 14);
    assert.equal(await editor.saved(FILE), once);
    assert.deepEqual(reached(editor.home, other), []);
  });

  test(`${other.name}, inserting: Tab is the ghost text's`, async () => {
    await enter("insert");
    const { renamed } = await edits.rename();
    await edits.untilDrawn(SHOWN);
    await editor.goto(3, 11);
    await editor.type("\n    b +");
    await editor.untilGhost("= 100");
    await editor.press("Tab");
    await editor.untilGhost("");
    assert.equal(await editor.saved(FILE), renamed.replace("1\n", "1\n    b += 100\n"));
    assert.deepEqual(reached(editor.home, other), []);
  });

  test(`${other.name}: Escape ends inserting, then dismisses the next edit`, async () => {
    await enter("insert");
    const { renamed } = await edits.rename();
    await edits.untilDrawn(SHOWN);
    await editor.press("Escape");
    await untilReached("escape", `mode ${normal}`);
    await edits.untilDrawn(SHOWN);
    await editor.press("Escape");
    await edits.untilDrawn(NOTHING);
    assert.equal(await editor.saved(FILE), renamed);
    assert.deepEqual(reached(editor.home, other), []);
  });

  test(`${other.name}, in normal mode: Tab stays its own, Ctrl+Alt+J makes the next edit`, async () => {
    await enter("insert");
    const { renamed, once } = await edits.rename();
    await edits.untilDrawn(SHOWN);
    await enter("normal");
    await editor.press("Tab");
    await untilReached("tab");
    assert.equal(await editor.saved(FILE), renamed);
    await edits.untilDrawn(SHOWN);
    await editor.press("Control+Alt+j");
    await edits.untilAt(2, 9);
    await editor.press("Control+Alt+j");
    await edits.untilAt(2, 14);
    assert.equal(await editor.saved(FILE), once);
    assert.deepEqual(reached(editor.home, other), []);
  });

  test(`${other.name}: Escape ends inserting, then discards the proposal of an edit`, async () => {
    await enter("insert");
    const { renamed } = await edits.rename();
    await propose();
    await editor.press("Escape");
    await untilReached("escape", `mode ${normal}`);
    assert.ok(await lens().isVisible());
    await editor.press("Escape");
    await lens().waitFor({ state: "detached" });
    assert.equal(await editor.saved(FILE), renamed);
    assert.deepEqual(reached(editor.home, other), []);
  });

  test(`${other.name}: in normal mode Escape stops an edit on its way`, async () => {
    await enter("insert");
    const { renamed } = await edits.rename();
    await enter("normal");
    editor.script({ lines: LINES, edits: EDITS, draft_ms: 1500 });
    await ask();
    const working = editor.page.locator(".codelens-decoration", { hasText: "Editing" });
    await working.waitFor();
    await editor.press("Escape");
    await working.waitFor({ state: "detached" });
    editor.script({ lines: LINES, edits: EDITS });
    assert.equal(await lens().count(), 0);
    assert.equal(await editor.saved(FILE), renamed);
    assert.deepEqual(reached(editor.home, other), []);
  });

  test(`${other.name}, switched off, has no key`, async () => {
    await enter("insert");
    await enter("off");
    const { once } = await edits.rename();
    await edits.untilDrawn(SHOWN);
    await editor.press("Tab", "Tab");
    await edits.untilAt(2, 14);
    assert.equal(await editor.saved(FILE), once);
    await editor.press("Escape");
    await edits.untilDrawn(NOTHING);
    assert.deepEqual(reached(editor.home, other), []);
  });
}

async function ask() {
  await editor.goto(3, 5);
  await editor.press("Control+Alt+e");
  const box = editor.page.locator(".quick-input-widget input");
  await box.waitFor();
  await box.fill(INSTRUCTION);
  await editor.press("Enter");
}

async function propose() {
  await ask();
  await lens().waitFor();
}
