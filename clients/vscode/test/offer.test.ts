import assert from "node:assert/strict";
import { test } from "node:test";
import { type Change, followed, isAt, type Offer } from "../src/text/offer.ts";

const OFFER: Offer<string> = {
  version: 3,
  line: 1,
  character: 11,
  choices: [
    { text: "a + b", item: "first" },
    { text: "a - b\n    # why", item: "second" },
  ],
};

function typing(text: string, changed: Partial<Change> = {}): Change[] {
  return [{ startLine: 1, startCharacter: 11, removed: 0, text, ...changed }];
}

function textsAfter(changes: Change[]): string[] | undefined {
  return followed(OFFER, changes, 4)?.choices.map(({ text }) => text);
}

test("what is typed is taken off every choice that starts with it", () => {
  assert.deepEqual(textsAfter(typing("a ")), ["+ b", "- b\n    # why"]);
  assert.deepEqual(textsAfter(typing("a +")), [" b"]);
});

test("the place moves behind what was typed, over line breaks as well", () => {
  const inLine = followed(OFFER, typing("a "), 4);
  assert.ok(inLine && isAt(inLine, 4, 1, 13));
  const nextLine = followed(OFFER, typing("a - b\n    "), 4);
  assert.ok(nextLine && isAt(nextLine, 4, 2, 4));
});

test("a choice keeps what it came with", () => {
  assert.deepEqual(
    followed(OFFER, typing("a -"), 4)?.choices.map(({ item }) => item),
    ["second"],
  );
});

for (const [what, changes] of [
  ["another letter", typing("x")],
  ["the whole text", typing("a - b\n    # why")],
  ["another place", typing("a", { startCharacter: 10 })],
  ["another line", typing("a", { startLine: 0 })],
  ["a deletion", typing("a", { removed: 1 })],
  ["two changes at once", [...typing("a"), ...typing("a")]],
] as const) {
  test(`${what} ends the offer`, () => assert.equal(followed(OFFER, changes, 4), undefined));
}

test("a change that changes nothing only counts the version on", () => {
  const next = followed(OFFER, [], 4);
  assert.ok(next && isAt(next, 4, 1, 11));
  assert.ok(!isAt(next, 3, 1, 11));
});

test("typing an offer letter by letter is the same as typing it at once", () => {
  const word = "a - b\n  ";
  let offer: Offer<string> | undefined = OFFER;
  for (const letter of word) {
    const { line, character, version }: Offer<string> = offer;
    const change: Change = { startLine: line, startCharacter: character, removed: 0, text: letter };
    const next: Offer<string> | undefined = followed(offer, [change], version + 1);
    assert.ok(next);
    offer = next;
  }
  const atOnce = followed(OFFER, typing(word), offer.version);
  assert.deepEqual(offer, atOnce);
});

const CALL: Offer<string> = {
  ...OFFER,
  choices: [
    { text: "(a, f(b)) + c", item: "call" },
    { text: "()", item: "empty" },
    { text: "[a]", item: "other" },
    { text: "(a", item: "open" },
  ],
};

for (const [what, pair, offered, left] of [
  ["a call", "()", "(a, f(b)) + c", "a, f(b)"],
  ["a string", '""', '"a \\" b" + c', 'a \\" b'],
  ["a bracket in a string", "[]", "['a]', b][0]", "'a]', b"],
  ["an apostrophe in a string", '""', '"it\'s")', "it's"],
  ["several lines", "{}", "{\n    a,\n}", "\n    a,\n"],
] as const) {
  test(`of ${what} that the editor closed, what stands in it is left`, () => {
    const offer = { ...OFFER, choices: [{ text: offered, item: "" }] };
    const next = followed(offer, typing(pair), 4);
    assert.deepEqual(
      next?.choices.map(({ text }) => text),
      [left],
    );
    assert.ok(next && isAt(next, 4, 1, 12));
  });
}

test("what is empty, another bracket or never closed is no longer offered", () => {
  const next = followed(CALL, typing("()"), 4);
  assert.deepEqual(
    next?.choices.map(({ item }) => item),
    ["call"],
  );
});
