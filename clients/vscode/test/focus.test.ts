import assert from "node:assert/strict";
import { test } from "node:test";
import { Focus } from "../src/focus.ts";

function followed() {
  const told: boolean[] = [];
  const window = { focused: true };
  const focus = new Focus(
    () => window.focused,
    (focused) => told.push(focused),
  );
  return { told, window, focus };
}

test("a server is told when it starts, and once of each change", () => {
  const { told, window, focus } = followed();
  focus.begin();
  focus.update(); // the window became inactive, say
  window.focused = false;
  focus.update();
  focus.update();
  assert.deepEqual(told, [true, false]);
});

test("the next server is told what the one before it was", () => {
  const { told, window, focus } = followed();
  focus.begin();
  window.focused = false;
  focus.update();
  focus.begin();
  focus.begin();
  assert.deepEqual(told, [true, false, false, false]);
});
