// The real server with dg-tiny, as people have it: ghost text, its time, an instructed edit.
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Editor, ROOT, SHOTS } from "./editor.mjs";

const FILE = "basket.py";
const TEXT = `class Basket:
    def __init__(self, items):
        self.items = items

    def total(self):
        return sum(item.price for item in self.items)

    def names(self):
        return [item.name for item in self.items]

    def __len__(self):
        
`;
const LINES = ["        return", "        if self", "        for it"];
/** A loaded machine takes seconds for what takes a tenth of one. */
const PATIENCE_MS = 8000;
const skip = existsSync(join(ROOT, "models/dg-tiny/config.json")) ? false : "dg-tiny is not here";
const PROGRAM = `#!/bin/sh
exec '${ROOT}/.venv/bin/dg-lsp' "$@"
`;

let editor;
before(async () => {
  if (skip) return;
  const began = performance.now();
  editor = await Editor.start({
    program: PROGRAM,
    machine: () => ({ "dgLsp.engineExitAfterS": 1 }),
    settings: { "dgLsp.reuseWhileTyping": false, "dgLsp.automaticDeadlineMs": 20_000 },
  });
  await editor.open(FILE, TEXT);
  await editor.until(() => editor.status(), /^dg-tiny( ·|$)/, 120_000);
  editor.seconds = (performance.now() - began) / 1e3;
});
after(() => editor?.close());

test("ghost text of the real model appears and is accepted", { skip }, async () => {
  await editor.goto(12, 9);
  const typed = "        return";
  let shown = 0;
  for (; shown < typed.trim().length; shown += 1) {
    await editor.type(typed.trim()[shown]);
    if (await editor.reaches(() => editor.ghost(), isSomething, PATIENCE_MS)) break;
  }
  await editor.shot("real-ghost-text");
  const ghost = await editor.ghost();
  await editor.press("Tab");
  const saved = await editor.saved(FILE);
  const line = saved.split("\n")[11];
  assert.ok(
    line.startsWith(typed.slice(0, 9 + shown) + ghost.split("\n")[0]),
    JSON.stringify({ line, ghost }),
  );
});

test("from keystroke to ghost text, measured", { skip }, async () => {
  await editor.page.evaluate(() => {
    globalThis.took = [];
    let pressed;
    const press = ({ key }) => {
      if (key.length === 1) pressed = performance.now();
    };
    document.addEventListener("keydown", press, true);
    const look = () => {
      const ghost = document.querySelector(".editor-instance .ghost-text-decoration");
      if (ghost?.textContent && pressed !== undefined) {
        globalThis.took.push(performance.now() - pressed);
        pressed = undefined;
      }
      requestAnimationFrame(look);
    };
    look();
  });
  const [totals, servers] = [[], []];
  await editor.goto(12, 9);
  for (const line of LINES) {
    await editor.press("Escape", "End", "Shift+Home", "Shift+Home", "Delete");
    for (const letter of line) {
      // What stands there already would only get shorter.
      await editor.press("Escape");
      await editor.untilGhost("");
      await editor.type(letter);
      // Answers that do not come are none of this measurement.
      if (!(await editor.reaches(() => editor.ghost(), isSomething, PATIENCE_MS))) continue;
      const ms = /· (\d+) ms/.exec(await editor.status());
      const total = await editor.page.evaluate(() => globalThis.took.shift());
      if (!ms || total === undefined) continue;
      totals.push(total);
      servers.push(Number(ms[1]));
    }
  }
  assert.ok(totals.length >= 5, `only ${totals.length} suggestions`);
  // For bench/editors.py.
  writeFileSync(join(SHOTS, "times.json"), JSON.stringify({ totals, servers }));
  console.log({
    "start to a ready model, s": Number(editor.seconds.toFixed(1)),
    suggestions: totals.length,
    "keystroke to ghost text, ms": quantiles(totals),
    "of it the server and the client library, ms": quantiles(servers),
  });
});

test("an instructed edit of the real model comes to an end", { skip }, async () => {
  await editor.goto(5, 1);
  await editor.press("Shift+ArrowDown", "Shift+ArrowDown", "Control+Alt+e");
  const box = editor.page.locator(".quick-input-widget input");
  await box.waitFor();
  await box.fill("return the number of items");
  await editor.press("Enter");
  const lens = editor.page.locator(".codelens-decoration a", { hasText: "Accept" });
  const toast = editor.page.locator(".notification-toast");
  await lens.or(toast).first().waitFor({ timeout: 60_000 });
  await editor.shot("real-inline-edit");
  const isShown = await lens.isVisible();
  const outcome = isShown
    ? "a proposal"
    : `none: ${await toast.first().locator(".notification-list-item-message").textContent()}`;
  const before = editor.onDisk(FILE);
  await editor.press("Escape");
  await lens.waitFor({ state: "detached" });
  assert.equal(editor.onDisk(FILE), before);
  console.log(outcome);
});

function isSomething(text) {
  return text !== "";
}

function quantiles(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => Math.round(sorted[Math.floor(share * (sorted.length - 1))] ?? 0);
  return { median: at(0.5), p90: at(0.9) };
}
