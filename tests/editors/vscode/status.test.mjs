// The status bar item: states, pauses, an engine and a server that end, settings that change.
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Editor } from "./editor.mjs";

const LINES = ["    return a + b"];
const TEXT = "def add(a, b):\n    \n";

let editor;
before(async () => {
  editor = await Editor.start({ script: { lines: LINES, edits: {} } });
  await editor.open("example.py", TEXT);
  await editor.goto(2, 5);
  await editor.wake("return a + b");
});
after(() => editor?.close());

let places = 0;
/** Ask at a place of its own: where a suggestion was passed over it is not offered again. */
async function again() {
  places += 1;
  await editor.focus();
  await editor.press("Escape", "Control+a", "Delete");
  await editor.type(`def add_${places}(a, b):\n`);
}

async function choose(label) {
  await editor.page.locator('.statusbar-item[id$="dgLsp.status"]').click();
  await editor.page.locator(".quick-input-widget input").waitFor();
  await editor.page.locator(".quick-input-list .monaco-list-row", { hasText: label }).click();
}

test("ready, it names the model and how long the last suggestion took", async () => {
  assert.match(await editor.status(), /^dg-tiny · \d+ ms$/);
});

for (const [label, sentence] of [
  ["Pause for this file", "Paused for this file"],
  ["Pause for this language", "Paused for this language"],
  ["Pause for this session", "Paused in this window"],
]) {
  test(`"${label}" stops suggestions until they are resumed`, async () => {
    await choose(label);
    await editor.until(() => editor.status(), "dg-tiny: paused");
    const item = editor.page.locator('.statusbar-item[id$="dgLsp.status"] a');
    assert.match(await item.getAttribute("aria-label"), new RegExp(sentence));
    await again();
    // An answer that would come is there within this time: see the next lines.
    assert.equal(await editor.reaches(() => editor.ghost(), "return a + b", 700), false);
    await choose("Resume suggestions");
    await editor.until(() => editor.status(), /^dg-tiny/);
    await again();
    await editor.untilGhost("return a + b");
  });
}

test("the menu has what one needs", async () => {
  await editor.page.locator('.statusbar-item[id$="dgLsp.status"]').click();
  await editor.page.locator(".quick-input-list .monaco-list-row").first().waitFor();
  const rows = await editor.page.locator(".quick-input-list .monaco-list-row").allInnerTexts();
  for (const label of [
    "Pause for this file",
    "Propose next edits",
    "Explain this place",
    "Choose a model",
    "Open the log",
    "Restart",
  ]) {
    assert.ok(
      rows.some((row) => row.includes(label)),
      `${label} in ${rows}`,
    );
  }
  // The menu fades in.
  await editor.page.locator(".quick-input-widget").evaluate((node) => {
    const all = document.getAnimations().filter(({ effect }) => node.contains(effect?.target));
    return Promise.all(all.map(({ finished }) => finished.catch(() => {}))).then(() => {});
  });
  await editor.shot("status");
  await editor.press("Escape");
});

/** What the server was told of the window's focus, in its order. */
const told = () =>
  readFileSync(join(editor.scripted, "focus.txt"), "utf8").trim().split("\n").join(", ");
/** A driven browser always has the focus, so the page is made to say that it has not. */
const look = (focused) =>
  editor.page.evaluate((has) => {
    document.hasFocus = () => has;
    window.dispatchEvent(new Event(has ? "focus" : "blur"));
  }, focused);

test("the server is told whether the window is looked at", async () => {
  await editor.until(told, "focused True");
  await look(false);
  await editor.until(told, "focused True, focused False");
  await look(true);
  await editor.until(told, "focused True, focused False, focused True");
});

test("a killed engine is seen and comes back", async () => {
  const seen = await editor.watchStatus();
  const old = editor.pid("engine");
  process.kill(old, "SIGKILL");
  await editor.until(async () => (await seen()).join("\n"), /restarting/);
  await editor.until(() => editor.status(), /^dg-tiny( ·|$)/);
  assert.notEqual(editor.pid("engine"), old);
  await again();
  await editor.untilGhost("return a + b");
});

test("a killed server is started again, and told of the focus", async () => {
  const old = editor.pid("server");
  rmSync(join(editor.scripted, "focus.txt"));
  process.kill(old, "SIGKILL");
  await editor.until(
    () => editor.pid("server"),
    (pid) => pid !== old,
  );
  await editor.until(() => editor.status(), /^dg-tiny/);
  await again();
  await editor.untilGhost("return a + b");
  assert.equal(told(), "focused True");
});

test("a server that always ends is left alone, and a restart brings it back", async () => {
  while ((await editor.status()) !== "dg-lsp: stopped") {
    const old = editor.pid("server");
    process.kill(old, "SIGKILL");
    await editor.until(
      async () => editor.pid("server") !== old || (await editor.status()) === "dg-lsp: stopped",
      true,
    );
  }
  await editor.shot("stopped");
  await choose("Restart the server");
  await editor.until(() => editor.status(), /^dg-tiny/);
});

test("settings of the machine start another engine", async () => {
  const configuration = () => readFileSync(join(editor.scripted, "configuration.txt"), "utf8");
  assert.match(configuration(), /threads=None/);
  await editor.configure({ "dgLsp.threads": 3 }, "Remote");
  await editor.until(configuration, /threads=3/);
  await editor.configure({ "dgLsp.model": "/models/dg-large" }, "Remote");
  await editor.until(() => editor.status(), /^dg-large/);
  await editor.until(configuration, /model='\/models\/dg-large'.*threads=None/);
  await editor.configure({}, "Remote");
  await editor.until(configuration, /model=None, threads=None/);
  await again();
  await editor.untilGhost("return a + b");
});

test("the menu lists the models, and the one that is chosen starts another engine", async () => {
  const configuration = () => readFileSync(join(editor.scripted, "configuration.txt"), "utf8");
  await choose("Choose a model");
  const rows = editor.page.locator(".quick-input-list .monaco-list-row");
  await rows.filter({ hasText: "/models/dg-large" }).waitFor();
  await editor.shot("models");
  await rows.filter({ hasText: "/models/dg-large" }).click();
  await editor.until(configuration, /model='dg-large'/);
  await editor.until(() => editor.status(), /^dg-large/);
  await editor.configure({}, "Remote");
  await editor.until(configuration, /model=None/);
  await again();
  await editor.untilGhost("return a + b");
});

test("other settings count at once, in the server that runs", async () => {
  const processes = [editor.pid("server"), editor.pid("engine")];
  await editor.configure({ "dgLsp.enabled": false });
  await again();
  await editor.until(() => editor.status(), "dg-tiny: off here");
  assert.equal(await editor.ghost(), "");
  await editor.configure({});
  await again();
  await editor.untilGhost("return a + b");
  assert.match(await editor.status(), /^dg-tiny · \d+ ms$/);
  assert.deepEqual([editor.pid("server"), editor.pid("engine")], processes);
});

test("what .dg-lsp.toml of the workspace says counts as soon as it is saved", async () => {
  const file = join(editor.workspace, ".dg-lsp.toml");
  writeFileSync(file, 'exclude = ["example.py"]\n');
  // Files are watched, or looked at every few seconds.
  await editor.until(async () => {
    await again();
    await editor.page.waitForTimeout(500);
    return editor.status();
  }, "dg-tiny: off here");
  assert.equal(await editor.ghost(), "");
  rmSync(file);
  await editor.until(async () => {
    await again();
    await editor.page.waitForTimeout(500);
    return editor.ghost();
  }, "return a + b");
});

test("a language that is not wanted gets nothing", async () => {
  await editor.until(() => editor.status(), /^dg-tiny/);
  await editor.configure({ "dgLsp.languages": ["go"] });
  await editor.until(() => editor.status(), "dg-lsp");
  await editor.configure({ "dgLsp.languages": ["python"] });
  await editor.until(() => editor.status(), /^dg-tiny/);
  await again();
  await editor.untilGhost("return a + b");
});

test("the place is explained in a terminal", async () => {
  await choose("Explain this place");
  const terminal = editor.page.locator(".terminal-wrapper.active, .terminal-outer-container");
  await terminal.first().waitFor();
  await editor.shot("explain");
});
