// Next edits in VS Code: marked, gone to, made as one step, dismissed; Tab stays what it is elsewhere.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { Editor } from "./editor.mjs";
import { NextEdits, NOTHING, SHOWN } from "./next_edits.mjs";

const FILE = "totals.py";
const FAR = 63;
const LINES = ["    b += 100"];
const INSTRUCTION = "count in steps of two";
const EDITS = { [INSTRUCTION]: [["b += 1", "b += 2"]] };
/** What would be proposed comes within this time: the other tests have theirs sooner. */
const ANSWER_MS = 2500;

let editor;
let edits;
before(async () => {
  editor = await Editor.start({
    script: { lines: LINES, edits: EDITS },
    settings: {
      "editor.autoIndent": "none",
      "editor.unicodeHighlight.ambiguousCharacters": false,
      "editor.wordBasedSuggestions": "off",
    },
  });
  const snippet = { prefix: "loop", body: "for $1 in $2:$0" };
  const snippets = join(editor.home, "data/User/snippets");
  mkdirSync(snippets, { recursive: true });
  writeFileSync(join(snippets, "python.json"), JSON.stringify({ loop: snippet }));
  edits = await NextEdits.in(editor);
  await editor.open(FILE, "");
  await editor.until(() => editor.status(), /^dg-tiny/);
});
beforeEach(() => editor.press("Escape", "Escape"));
after(() => editor?.close());

const afar = () => editor.page.locator('.statusbar-item[id$="dgLsp.nextEdit"]');

const rename = () => edits.rename();
const drawn = () => edits.drawn();
const untilDrawn = (expected) => edits.untilDrawn(expected);
const untilAt = (line, column) => edits.untilAt(line, column);

/** How much of it was looked at; the server may write more at any moment. */
let heard = 0;

/** What the server was told of its proposals, since it was last asked for. */
function told() {
  const lines = readFileSync(join(editor.scripted, "next_edits.txt"), "utf8").split("\n");
  const fresh = lines.slice(heard, -1);
  heard = lines.length - 1;
  return fresh;
}

test("as long as it is off nothing is proposed, and Tab indents", async () => {
  const { renamed } = await rename();
  const isSomething = (found) => JSON.stringify(found) !== JSON.stringify(NOTHING);
  assert.equal(await editor.reaches(drawn, isSomething, ANSWER_MS), false);
  await editor.press("Tab");
  assert.equal(await editor.saved(FILE), renamed.replace("first,", "first ,"));
});

test("the menu switches it on, and the next place is marked; nothing is written", async () => {
  await editor.choose("Propose next edits");
  const settings = () => readFileSync(join(editor.home, "data/User/settings.json"), "utf8");
  await editor.until(settings, /"dgLsp\.nextEdit":\s*true/);
  const { renamed } = await rename();
  await untilDrawn(SHOWN);
  await untilAt(1, 16);
  assert.equal(await editor.saved(FILE), renamed);
  assert.equal(await afar().count(), 0);
  await untilDrawn(SHOWN);
  await editor.shot("next-edit");
});

test("Tab goes there, Tab again makes it, and one undo brings back the bytes", async () => {
  const { renamed, once } = await rename();
  await untilDrawn(SHOWN);
  told();
  await editor.press("Tab");
  await untilAt(2, 9);
  assert.equal(await editor.saved(FILE), renamed);
  await editor.press("Tab");
  await untilAt(2, 14);
  assert.equal(await editor.saved(FILE), once);
  await editor.press("Control+z");
  assert.equal(await editor.saved(FILE), renamed);
  await untilDrawn(NOTHING);
  await editor.press("Control+Shift+z");
  assert.equal(await editor.saved(FILE), once);
});

test("pressed at once one after the other, the keys do the same, and the server is told", async () => {
  const { once } = await rename();
  await untilDrawn(SHOWN);
  const [shown] = told().at(-1).match(/\d+/);
  await editor.press("Tab", "Tab");
  await untilAt(2, 14);
  assert.equal(await editor.saved(FILE), once);
  await afar().waitFor();
  const [taken, seen, next] = told();
  assert.deepEqual([taken, seen], [`taken ${shown}`, `drawn ${shown}`]);
  assert.match(next, /^drawn \d+$/);
});

test("out of sight it says where it is, and Tab goes there as well", async () => {
  const { twice } = await rename();
  await untilDrawn(SHOWN);
  await editor.press("Tab", "Tab");
  await untilDrawn({ struck: "", comes: [`↓ Next edit: line ${FAR}`], marks: [] });
  assert.match(await afar().textContent(), new RegExp(`Next edit: line ${FAR}$`));
  await editor.shot("next-edit-afar");
  await editor.press("Tab");
  await untilAt(FAR, 12);
  await untilDrawn({ ...SHOWN, marks: [FAR] });
  await afar().waitFor({ state: "detached" });
  await editor.press("Tab");
  assert.equal(await editor.saved(FILE), twice);
  await untilDrawn(NOTHING);
  await editor.press("Tab");
  assert.equal(await editor.saved(FILE), twice.replace("return first", "return first    "));
});

test("Escape dismisses it, the bytes stay, and Tab indents again", async () => {
  const { renamed } = await rename();
  await untilDrawn(SHOWN);
  await editor.press("Escape");
  await untilDrawn(NOTHING);
  assert.equal(await editor.saved(FILE), renamed);
  await editor.press("Tab");
  assert.equal(await editor.saved(FILE), renamed.replace("first,", "first ,"));
});

test("before the text of a line Tab indents, and what is edited elsewhere leaves it there", async () => {
  const { renamed } = await rename();
  await untilDrawn(SHOWN);
  await editor.goto(3, 1);
  await editor.press("Tab");
  await editor.goto(1, 1);
  await editor.type("\n");
  await untilDrawn({ ...SHOWN, marks: [3] });
  const indented = `\n${renamed.replace("    b", "        b")}`;
  assert.equal(await editor.saved(FILE), indented);
  await editor.press("Control+Alt+j");
  await untilAt(3, 9);
  await editor.press("Control+Alt+j");
  await untilAt(3, 14);
  assert.equal(await editor.saved(FILE), indented.replace("= a", "= first"));
});

test("what is typed in its line, or goes on with the new name, ends it", async () => {
  await rename();
  await untilDrawn(SHOWN);
  await editor.type("_one");
  await untilDrawn({ ...SHOWN, comes: ["first_one"] });
  await editor.goto(2, 10);
  await editor.type("b");
  await untilDrawn(NOTHING);
});

test("ghost text has Tab and Escape first", async () => {
  const { renamed } = await rename();
  await untilDrawn(SHOWN);
  await editor.goto(3, 11);
  await editor.type("\n    b +");
  await editor.untilGhost("= 100");
  await untilDrawn(SHOWN);
  await editor.press("Tab");
  await editor.untilGhost("");
  const longer = renamed.replace("b += 1\n", "b += 1\n    b += 100\n");
  assert.equal(await editor.saved(FILE), longer);
  await untilDrawn(SHOWN);
  // Elsewhere, for right behind it the line would say the one above again.
  await editor.goto(9, 11);
  await editor.type("\n    b +");
  await editor.untilGhost("= 100");
  await editor.press("Escape");
  await editor.untilGhost("");
  await untilDrawn(SHOWN);
  await editor.press("Escape");
  await untilDrawn(NOTHING);
});

test("a pause takes it away", async () => {
  await rename();
  await untilDrawn(SHOWN);
  await editor.choose("Pause for this file");
  await untilDrawn(NOTHING);
  await editor.choose("Resume suggestions");
  await editor.choose("Stop proposing next edits");
  await editor.choose("Propose next edits");
  await editor.until(() => editor.status(), /^dg-tiny/);
  await rename();
  await untilDrawn(SHOWN);
});

test("suggestions and snippets have Tab first", async () => {
  const { renamed } = await rename();
  await untilDrawn(SHOWN);
  await editor.goto(3, 11);
  await editor.type("\n    loo");
  await editor.press("Control+Space");
  await editor.page.locator(".suggest-widget.visible .monaco-list-row.focused").waitFor();
  await editor.press("Tab");
  await editor.until(() => editor.text(), /for {2}in :/);
  await editor.type("item");
  await editor.press("Tab");
  await editor.type("things");
  const longer = renamed.replace("b += 1\n", "b += 1\n    for item in things:\n");
  assert.equal(await editor.saved(FILE), longer);
  await untilDrawn(SHOWN);
  await editor.press("Escape");
  await untilDrawn(SHOWN);
  await editor.press("Escape");
  await untilDrawn(NOTHING);
});

test("an instructed edit has the screen and Escape to itself", async () => {
  const { renamed } = await rename();
  await untilDrawn(SHOWN);
  await editor.goto(3, 5);
  await editor.press("Control+Alt+e");
  const box = editor.page.locator(".quick-input-widget input");
  await box.waitFor();
  await box.fill(INSTRUCTION);
  await editor.press("Enter");
  await editor.page.locator(".codelens-decoration a", { hasText: "Accept" }).waitFor();
  assert.deepEqual((await drawn()).marks, []);
  await editor.press("Escape");
  await untilDrawn(SHOWN);
  assert.equal(await editor.saved(FILE), renamed);
});

test("where the model has to agree it is asked, and a change made by hand is gone on with", async () => {
  const text = "get(one, 1)\nget(one, 1)\nget(one, 1)\n";
  editor.script({ lines: ["get(one, 1, True"], edits: {} });
  await editor.open("calls.py", text);
  await editor.until(() => editor.status(), /^dg-tiny/);
  await editor.goto(1, 11);
  await editor.type(", True");
  const coming = { struck: "", comes: [", True"] };
  await untilDrawn({ ...coming, marks: [2] });
  assert.match(editor.prompts(), /get\(one, 1, True\)/);
  await editor.goto(2, 11);
  await editor.type(", True");
  await untilDrawn({ ...coming, marks: [3] });
  await editor.press("Control+Alt+j", "Control+Alt+j");
  await untilAt(3, 17);
  assert.equal(await editor.saved("calls.py"), text.replaceAll("1)", "1, True)"));
});

test("CRLF, tabs and characters of two units stay what they are, and one undo is one edit", async () => {
  const text = [
    "def report(x, places):",
    '\t"""Print the mean of numbers."""',
    "\ttotal = sum(x)",
    "\tprint('𝔼', round(total / len(x), places))",
    "",
  ].join("\r\n");
  await editor.open("report.py", text);
  await editor.until(() => editor.status(), /^dg-tiny/);
  await editor.goto(1, 12);
  await editor.press("Shift+ArrowRight");
  await editor.type("values");
  const place = { struck: "x", comes: ["values"] };
  await untilDrawn({ ...place, marks: [3] });
  await editor.shot("next-edit-readme");
  await editor.press("Tab", "Tab");
  await untilDrawn({ ...place, marks: [4] });
  await editor.press("Tab", "Tab");
  await untilDrawn(NOTHING);
  const first = text.replace("report(x", "report(values").replace("sum(x", "sum(values");
  await untilAt(4, 40);
  assert.equal(await editor.saved("report.py"), first.replace("len(x", "len(values"));
  await editor.press("Control+z");
  assert.equal(await editor.saved("report.py"), first);
});
