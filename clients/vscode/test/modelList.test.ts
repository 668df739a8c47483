import assert from "node:assert/strict";
import { test } from "node:test";
import { modelsOf } from "../src/text/modelList.ts";

test("a model has a name, a size and a folder, all of which may hold single blanks", () => {
  const printed =
    "dg-tiny        27.3 MiB  /models/dg-tiny\nmy model     9000.0 MiB  /my models/m\n";
  assert.deepEqual(modelsOf(printed), [
    { name: "dg-tiny", size: "27.3 MiB", folder: "/models/dg-tiny" },
    { name: "my model", size: "9000.0 MiB", folder: "/my models/m" },
  ]);
});

test("other lines are passed over", () => {
  assert.deepEqual(modelsOf("\nwarning: slow\r\ndg-tiny  1.0 MiB  /m\r\n"), [
    { name: "dg-tiny", size: "1.0 MiB", folder: "/m" },
  ]);
});
