// Ghost text in VS Code: it appears, is taken whole or by words, sent away, cycled, typed through.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Editor } from "./editor.mjs";

const START = "def add(a, b):\n    \n";
const LINES = ["    return a + b", "    return a - b", "    return sum((a, b))"];

let editor;
before(async () => {
  editor = await Editor.start({ script: { lines: LINES, edits: {} } });
  // As people bind it: VS Code has no key of its own for a line.
  const line = { key: "ctrl+alt+l", command: "editor.action.inlineSuggest.acceptNextLine" };
  writeFileSync(join(editor.home, "data/User/keybindings.json"), JSON.stringify([line]));
  await editor.open("example.py", START);
  await editor.goto(2, 5);
  await editor.wake("return a + b");
});
after(() => editor?.close());

async function anew() {
  await editor.press("Control+a");
  await editor.type("x");
  await editor.press("Control+a", "Delete");
  await editor.type("def add(a, b):\n");
  await editor.untilGhost("return a + b");
}

/** What the server was told of suggestions that were taken. */
function taken() {
  const path = join(editor.scripted, "taken.txt");
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

test("ghost text stands behind the cursor and Tab takes it, of which the server is told", async () => {
  await anew();
  await editor.shot("ghost-text");
  assert.equal(taken(), "");
  await editor.press("Tab");
  await editor.untilGhost("");
  assert.equal(await editor.saved("example.py"), "def add(a, b):\n    return a + b");
  await editor.until(taken, /^taken \d+\n$/);
});

test("the next word can be taken alone", async () => {
  await anew();
  const whole = "return a + b";
  let left = whole;
  while (left.length > "+ b".length) {
    const before = left;
    await editor.press("Control+ArrowRight");
    await editor.until(
      () => editor.ghost(),
      (ghost) => ghost !== "" && ghost !== before,
    );
    left = await editor.ghost();
    assert.ok(whole.endsWith(left) && left.length < before.length, left);
  }
  const taken = whole.slice(0, whole.length - left.length);
  assert.equal(await editor.saved("example.py"), `def add(a, b):\n    ${taken}`);
});

test("Escape sends it away and leaves the text as it was", async () => {
  await anew();
  await editor.press("Escape");
  await editor.untilGhost("");
  assert.equal(await editor.saved("example.py"), "def add(a, b):\n    ");
});

test("Alt+] shows the next one, Alt+[ the one before", async () => {
  await anew();
  await editor.press("Alt+]");
  await editor.untilGhost("return a - b");
  await editor.press("Alt+]");
  await editor.untilGhost("return sum((a, b))");
  await editor.press("Alt+[");
  await editor.untilGhost("return a - b");
  await editor.press("Tab");
  assert.equal(await editor.saved("example.py"), "def add(a, b):\n    return a - b");
});

test("typing what it says never empties it, however slow the engine is", async () => {
  await anew();
  editor.script({ lines: LINES, edits: {}, delay_ms: 300 });
  const drawn = await editor.watchGhost();
  const word = "return a";
  await editor.type(word, 60);
  await editor.untilGhost(" + b");
  const texts = await drawn();
  editor.script({ lines: LINES, edits: {} });
  const gone = texts.filter((text) => text === "").length;
  assert.equal(gone, 0, `empty in ${gone} of ${texts.length} frames`);
  const seen = [...new Set(texts)];
  assert.ok(seen.length > word.length / 2, `only ${JSON.stringify(seen)}`);
  assert.ok(
    seen.every((text) => "return a + b".endsWith(text)),
    JSON.stringify(seen),
  );
});

test("brackets and quotes that the editor closes leave it there, without asking the model", async () => {
  const lines = ["    return a + b", "    print('sum', a + b)"];
  editor.script({ lines, edits: {} });
  await anew();
  await editor.type("print");
  await editor.untilGhost("('sum', a + b)");
  editor.forgetPrompts();
  editor.script({ lines, edits: {}, delay_ms: 300 });
  const drawn = await editor.watchGhost();
  await editor.type("(");
  await editor.untilGhost("'sum', a + b");
  await editor.type("'");
  await editor.untilGhost("sum");
  const texts = await drawn();
  editor.script({ lines: LINES, edits: {} });
  assert.equal(editor.prompts(), "");
  assert.equal(texts.indexOf(""), -1, JSON.stringify([...new Set(texts)]));
  await editor.press("Tab");
  assert.equal(await editor.saved("example.py"), "def add(a, b):\n    print('sum')");
});

test("typing something else brings another one", async () => {
  await anew();
  await editor.type("return s");
  await editor.untilGhost("um((a, b))");
});

test("lines can be taken one by one", async () => {
  editor.script({ lines: ["    total = a + b\n    return total"], edits: {} });
  await editor.press("Control+a", "Delete");
  await editor.type("def sum_of(a, b):\n");
  await editor.untilGhost("total = a + b\n    return total");
  await editor.press("Control+Alt+l");
  await editor.untilGhost("    return total");
  assert.equal(await editor.saved("example.py"), "def sum_of(a, b):\n    total = a + b\n");
  await editor.press("Control+Alt+l");
  await editor.untilGhost("");
  const whole = "def sum_of(a, b):\n    total = a + b\n    return total";
  assert.equal(await editor.saved("example.py"), whole);
});
