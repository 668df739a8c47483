import assert from "node:assert/strict";
import { test } from "node:test";
import {
  added,
  causeAfter,
  causeOf,
  followed,
  indents,
  type Kept,
  made,
  readable,
} from "../src/text/nextEdit.ts";
import type { Region, Replacement } from "../src/text/region.ts";

const TEXT = "f(first)\n\nuse(a)\n";
const KEPT: Kept = {
  line: { start: 10, end: 16 },
  lineText: "use(a)",
  start: 4,
  end: 5,
  text: "first",
  cause: { start: 2, end: 7 },
};

function apply(text: string, { offset, removed, text: inserted }: Replacement): string {
  return text.slice(0, offset) + inserted + text.slice(offset + removed);
}

/** Every change of a text by one of these insertions. */
function* changesOf(text: string, insertions: readonly string[]): Generator<Replacement> {
  for (let offset = 0; offset <= text.length; offset += 1) {
    for (let removed = 0; offset + removed <= text.length; removed += 1) {
      for (const inserted of insertions) {
        const startsLine = offset === 0 || text[offset - 1] === "\n";
        if (removed > 0 || inserted !== "") yield { offset, removed, text: inserted, startsLine };
      }
    }
  }
}

function at(text: string, { start, end }: Region): string {
  return text.slice(start, end);
}

test("whatever single change happens, an edit that is kept has its line, and the word it came from", () => {
  let kept = 0;
  for (const change of changesOf(TEXT, ["", "x", ": int", "\n"])) {
    const next = followed(KEPT, [change]);
    if (next === undefined) continue;
    kept += 1;
    const now = apply(TEXT, change);
    assert.equal(at(now, next.line), "use(a)", JSON.stringify(change));
    assert.equal(at(now, next.cause), "first", JSON.stringify(change));
    assert.match(now.slice(next.line.end), /^(\n|$)/, JSON.stringify(change));
    assert.match(now.slice(next.cause.end), /^(?![a-z])/, JSON.stringify(change));
    assert.deepEqual([next.start, next.end, next.text], [4, 5, "first"]);
  }
  assert.ok(kept > 20, `${kept}`);
});

for (const [what, change, isKept] of [
  ["typing in its line", { offset: 15, removed: 0, text: "x" }, false],
  ["going on with the word that it follows from", { offset: 7, removed: 0, text: "ly" }, false],
  ["changing that word back", { offset: 2, removed: 5, text: "a" }, false],
  ["typing a type behind that word", { offset: 7, removed: 0, text: ": int" }, true],
  ["a new line above", { offset: 0, removed: 0, text: "# new\n" }, true],
  ["taking away the line above", { offset: 9, removed: 1, text: "", startsLine: true }, true],
  ["joining it with that line", { offset: 9, removed: 1, text: "" }, false],
  ["typing below", { offset: 17, removed: 0, text: "x" }, true],
] as const) {
  test(`${what} ${isKept ? "keeps" : "ends"} it`, () => {
    assert.equal(followed(KEPT, [change]) !== undefined, isKept);
  });
}

test("the same change at another line waits its turn, another change is shown at once", () => {
  const near: Kept = KEPT;
  const far: Kept = { ...KEPT, line: { start: 50, end: 56 } };
  const farther: Kept = { ...KEPT, line: { start: 90, end: 96 } };
  const other: Kept = { ...KEPT, line: { start: 70, end: 76 }, text: "second" };
  const waiting = [near, far, farther].reduce<readonly Kept[]>(added, []);
  assert.deepEqual(waiting, [farther, far, near]);
  assert.deepEqual(added(waiting, other), [farther, far, near, other]);
  assert.deepEqual(added([near, other], far), [far, near, other]);
});

test("another edit of the same line takes the place of the one before", () => {
  const far: Kept = { ...KEPT, line: { start: 50, end: 56 } };
  const instead: Kept = { ...KEPT, text: "second" };
  assert.deepEqual(added([far, KEPT], instead), [far, instead]);
  assert.deepEqual(added([KEPT, far], instead), [instead, far]);
});

test("what was taken away is brought back by whatever is put there", () => {
  const gone = { start: 3, end: 3 };
  assert.equal(causeAfter(gone, [{ offset: 3, removed: 0, text: " " }]), undefined);
  assert.deepEqual(causeAfter(gone, [{ offset: 0, removed: 1, text: "" }]), { start: 2, end: 2 });
});

test("typing a word is one cause, and so is taking back a letter of it", () => {
  let cause = causeOf(undefined, [{ offset: 2, removed: 1, text: "f" }]);
  for (const [index, letter] of [..."irst"].entries()) {
    cause = causeOf(cause, [{ offset: 3 + index, removed: 0, text: letter }]);
  }
  assert.deepEqual(cause, { start: 2, end: 7 });
  cause = causeOf(cause, [{ offset: 6, removed: 1, text: "" }]);
  assert.deepEqual(cause, { start: 2, end: 6 });
  assert.deepEqual(causeOf(cause, [{ offset: 9, removed: 0, text: "x" }]), { start: 9, end: 10 });
});

test("around the cause of two changes the text is what it was, if they go on with each other", () => {
  const text = "abcd";
  let joined = 0;
  for (const first of changesOf(text, ["", "x", "yz"])) {
    const between = apply(text, first);
    const cause = causeOf(undefined, [first]);
    assert.equal(at(between, cause), first.text);
    for (const second of changesOf(between, ["", "u"])) {
      const now = apply(between, second);
      const next = causeOf(cause, [second]);
      const isApart = second.offset > cause.end || second.offset + second.removed < cause.start;
      if (isApart) {
        assert.equal(at(now, next), second.text);
        continue;
      }
      joined += 1;
      const behind = now.length - next.end;
      assert.equal(now.slice(0, next.start), text.slice(0, next.start));
      assert.equal(now.slice(next.end), text.slice(text.length - behind));
    }
  }
  assert.ok(joined > 500, `${joined}`);
});

test("changes that are made at once have one cause", () => {
  const changes = [
    { offset: 6, removed: 1, text: "12" },
    { offset: 1, removed: 0, text: "345" },
  ];
  assert.deepEqual(causeOf(undefined, changes), { start: 1, end: 11 });
});

test("for the eye or not, the edit makes the same line", () => {
  const line = "a.price(x)";
  for (let start = 0; start <= line.length; start += 1) {
    for (let end = start; end <= line.length; end += 1) {
      for (const text of ["", "z", "(", " z"]) {
        const edit = { start, end, text };
        const shown = readable(line, edit);
        assert.equal(made(line, shown), made(line, edit));
        assert.ok(shown.start <= start && shown.end >= end);
      }
    }
  }
});

for (const [what, edit, old, text] of [
  ["a word that changes in the middle is replaced whole", [5, 6, "z"], "price", "prize"],
  ["a word that only grows is not", [7, 7, "s"], "", "s"],
  ["nor one that only shrinks", [6, 7, ""], "e", ""],
  ["signs stand for themselves", [7, 8, "["], "(", "["],
] as const) {
  test(what, () => {
    const [start, end, given] = edit;
    const line = "a.price(x)";
    const shown = readable(line, { start, end, text: given });
    assert.deepEqual([line.slice(shown.start, shown.end), shown.text], [old, text]);
  });
}

test("Tab is for indenting where nothing but blanks is before the cursor", () => {
  assert.ok(indents(""));
  assert.ok(indents(" \t"));
  assert.ok(!indents("  x"));
});
