import assert from "node:assert/strict";
import { test } from "node:test";
import { moved, movedByAll, type Replacement } from "../src/text/region.ts";

const TEXT = "one\ntwo\nthree\nfour\n";
const REGION = { start: 4, end: 13 }; // "two\nthree"

function apply(text: string, { offset, removed, text: inserted }: Replacement): string {
  return text.slice(0, offset) + inserted + text.slice(offset + removed);
}

test("whatever single change happens, a region that survives holds whole lines of the old text", () => {
  let survived = 0;
  for (let offset = 0; offset <= TEXT.length; offset += 1) {
    for (let removed = 0; offset + removed <= TEXT.length; removed += 1) {
      for (const text of ["", "x", "x\n", "\nx"]) {
        const startsLine = offset === 0 || TEXT[offset - 1] === "\n";
        const change = { offset, removed, text, startsLine };
        const region = moved(REGION, change);
        if (region === undefined) continue;
        survived += 1;
        const now = apply(TEXT, change);
        assert.equal(now.slice(region.start, region.end), "two\nthree");
        assert.ok(region.start === 0 || now[region.start - 1] === "\n", JSON.stringify(change));
        assert.ok(region.end === now.length || now[region.end] === "\n", JSON.stringify(change));
      }
    }
  }
  assert.ok(survived > 50);
});

for (const [what, change] of [
  ["typing in it", { offset: 6, removed: 0, text: "x" }],
  ["typing at its beginning", { offset: 4, removed: 0, text: "x" }],
  ["typing at its end", { offset: 13, removed: 0, text: "x" }],
  ["joining the line above", { offset: 3, removed: 1, text: "" }],
  ["joining the line below", { offset: 13, removed: 1, text: "" }],
] as const) {
  test(`${what} ends the region`, () => assert.equal(moved(REGION, change), undefined));
}

test("lines above that are taken away whole leave it, in part they end it", () => {
  const whole = { offset: 0, removed: 4, text: "", startsLine: true };
  assert.deepEqual(moved(REGION, whole), { start: 0, end: 9 });
  assert.equal(moved(REGION, { offset: 2, removed: 2, text: "", startsLine: false }), undefined);
});

test("changes made at once move it together", () => {
  const changes = [
    { offset: 14, removed: 4, text: "4" },
    { offset: 0, removed: 3, text: "first" },
  ];
  assert.deepEqual(movedByAll(REGION, changes), { start: 6, end: 15 });
});
