import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Questions } from "../src/questions.ts";

interface Asked {
  readonly signal: AbortSignal;
  readonly answer: (text: string) => void;
  readonly fail: (error: Error) => void;
}

let asked: Asked[];
let used: string[];
let failures: unknown[];
let settled: number;
let questions: Questions;

beforeEach(() => {
  mock.timers.enable({ apis: ["setTimeout"] });
  [asked, used, failures, settled] = [[], [], [], 0];
  questions = new Questions(
    async (signal) => {
      const { promise, resolve, reject } = promised();
      asked.push({ signal, answer: resolve, fail: reject });
      const text = await promise;
      if (!signal.aborted) used.push(text);
    },
    (error) => failures.push(error),
    () => {
      settled += 1;
    },
  );
});
afterEach(() => mock.timers.reset());

function promised() {
  let resolve: (text: string) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<string>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Let everything run that waits for no timer. */
async function rest(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
}

function last(): Asked {
  const found = asked.at(-1);
  assert.ok(found);
  return found;
}

test("nothing is asked while somebody types, and one thing after a pause", () => {
  for (let key = 0; key < 10; key += 1) {
    questions.soon(250);
    mock.timers.tick(249);
  }
  assert.equal(asked.length, 0);
  mock.timers.tick(1);
  assert.equal(asked.length, 1);
  mock.timers.tick(10_000);
  assert.equal(asked.length, 1);
});

test("an answer is used, and then the question is over", async () => {
  questions.soon(0);
  mock.timers.tick(0);
  last().answer("a");
  await rest();
  assert.deepEqual([used, settled], [["a"], 1]);
});

test("the next key ends the question that is being asked, and its answer is dropped", async () => {
  questions.soon(250);
  mock.timers.tick(250);
  const late = last();
  questions.soon(250);
  assert.ok(late.signal.aborted);
  late.answer("late");
  await rest();
  assert.deepEqual([used, settled], [[], 0]);
  mock.timers.tick(250);
  last().answer("in time");
  await rest();
  assert.deepEqual([used, settled, asked.length], [["in time"], 1, 2]);
});

test("an error is told, unless the question is not wanted any more", async () => {
  questions.soon(0);
  mock.timers.tick(0);
  last().fail(new Error("first"));
  await rest();
  questions.soon(0);
  mock.timers.tick(0);
  questions.stop();
  last().fail(new Error("second"));
  await rest();
  assert.deepEqual(failures.map(String), ["Error: first"]);
  assert.equal(settled, 1);
});

test("stopped in the pause, it never asks", () => {
  questions.soon(250);
  questions.stop();
  mock.timers.tick(10_000);
  assert.equal(asked.length, 0);
});
