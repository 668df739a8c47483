import assert from "node:assert/strict";
import { test } from "node:test";
import { beside } from "../src/text/beside.ts";

test("the proposal stands in one column beside the old lines", () => {
  const { rows, hidden } = beside(["a = 1", "bcd = 22"], ["a = 1", "bcd = 3"], [], 4);
  assert.equal(hidden, 0);
  assert.deepEqual(
    rows.map((row) => row.removed),
    [false, true],
  );
  const columns = rows.map((row) => ["a = 1", "bcd = 22"][row.line]?.length ?? 0);
  assert.deepEqual(
    rows.map((row, i) => (columns[i] ?? 0) + (row.beside?.gap ?? 0)),
    [12, 12],
  );
  assert.deepEqual(
    rows.map((row) => [row.beside?.text.trimEnd(), row.beside?.added]),
    [
      ["a = 1", false],
      ["bcd = 3", true],
    ],
  );
});

test("a longer proposal goes on beside the lines that follow", () => {
  const { rows, hidden } = beside(["x"], ["x", "y", "z"], ["long line below"], 4);
  assert.deepEqual(
    rows.map((row) => row.beside?.text.trim()),
    ["x", "y"],
  );
  assert.equal(rows[1]?.removed, false);
  assert.equal(hidden, 1);
});

test("a shorter proposal leaves the last lines without a neighbour", () => {
  const { rows } = beside(["x", "y"], ["x"], ["below"], 4);
  assert.deepEqual(
    rows.map((row) => row.beside !== undefined),
    [true, false],
  );
});

test("tabs count to the next stop, on both sides", () => {
  const { rows } = beside(["\tx"], ["\ty"], [], 8);
  assert.equal(rows[0]?.beside?.text.trimEnd(), "        y");
  assert.equal(rows[0]?.beside?.gap, 4);
});

test("a very long line keeps its distance without moving the others", () => {
  const { rows } = beside(["x".repeat(300), "y"], ["x", "z"], [], 4);
  assert.equal(rows[0]?.beside?.gap, 4);
  assert.equal(rows[1]?.beside?.gap, 91);
});
