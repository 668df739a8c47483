import assert from "node:assert/strict";
import { test } from "node:test";
import { counts, type DiffLine, lineDiff, unified } from "../src/text/lineDiff.ts";

const LINES = ["a", "b", "c"];

/** Every text of up to four lines over a small alphabet. */
function* texts(length = 4): Generator<string[]> {
  yield [];
  if (length === 0) return;
  for (const rest of texts(length - 1)) for (const line of LINES) yield [line, ...rest];
}

function side(diff: DiffLine[], gone: "added" | "removed"): string[] {
  return diff.filter(({ kind }) => kind !== gone).map(({ text }) => text);
}

test("a diff holds both texts, and no common line as a change", () => {
  for (const old of texts(3)) {
    for (const now of texts(3)) {
      const diff = lineDiff(old, now);
      assert.deepEqual(side(diff, "added"), old);
      assert.deepEqual(side(diff, "removed"), now);
    }
  }
});

test("a text does not differ from itself", () => {
  for (const text of texts())
    assert.deepEqual(counts(lineDiff(text, text)), { added: 0, removed: 0 });
});

test("only the lines that differ are marked", () => {
  const diff = lineDiff(["def f():", "    x = 1", "    return x"], ["def f():", "    return 1"]);
  assert.equal(unified(diff), " def f():\n-    x = 1\n-    return x\n+    return 1");
  assert.deepEqual(counts(diff), { added: 1, removed: 2 });
});
