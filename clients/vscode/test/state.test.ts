import assert from "node:assert/strict";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { Crashes } from "../src/crashes.ts";
import { locate, type Places } from "../src/locate.ts";
import { levelOf } from "../src/logLevel.ts";
import { type CopilotSigns, copilotWrites } from "../src/others.ts";
import { Pauses } from "../src/pauses.ts";
import { type Shown, viewOf } from "../src/statusView.ts";
import { placeArgument } from "../src/text/place.ts";

const t = (message: string, ...parts: string[]) =>
  message.replace(/\{(\d)\}/g, (_, index: string) => parts[Number(index)] ?? "");

const SHOWN: Shown = {
  run: "running",
  trouble: "",
  server: { busy: false, kind: "Normal", message: "" },
  restarting: false,
  model: "dg-tiny",
  pause: undefined,
  latency: undefined,
  editing: false,
};
const error = { busy: false, kind: "Error", message: "Out of memory." } as const;
const loading = { busy: true, kind: "Inactive", message: "" } as const;
const excluded = { busy: false, kind: "Inactive", message: "Secrets live here." } as const;
const warning = { busy: true, kind: "Warning", message: "It stopped." } as const;

for (const [changed, text, severity, sentence] of [
  [{ run: "missing", trouble: "Not there." }, "dg-lsp: not installed", "warning", "Not there."],
  [{ run: "stopped", trouble: "Too often." }, "dg-lsp: stopped", "error", "Too often."],
  [{ run: "starting" }, "dg-lsp: starting", "none", "The server starts."],
  [{ run: "waiting" }, "dg-lsp", "none", "Starts with the first file."],
  [{ server: undefined }, "dg-tiny: loading", "none", "The model loads."],
  [{ server: loading }, "dg-tiny: loading", "none", "The model loads."],
  [{ server: excluded }, "dg-tiny: off here", "none", "Secrets live here."],
  [{ server: error }, "dg-tiny: failed", "error", "Out of memory."],
  [{ server: error, pause: "all" }, "dg-tiny: failed", "error", "Out of memory."],
  [{ server: warning, restarting: true }, "dg-tiny: restarting", "warning", "It stopped."],
  [{ server: warning }, "dg-tiny", "warning", "It stopped."],
  [{ pause: "file" }, "dg-tiny: paused", "none", "Paused for this file."],
  [{ pause: "language" }, "dg-tiny: paused", "none", "Paused for this language."],
  [{ editing: true }, "dg-tiny: editing", "none", "An edit is being made."],
  [{}, "dg-tiny", "none", "Ready."],
  [{ latency: 41.7 }, "dg-tiny · 42 ms", "none", "Ready."],
] as [Partial<Shown>, string, string, string][]) {
  test(`${JSON.stringify(changed)} reads "${text}"`, () => {
    const view = viewOf({ ...SHOWN, ...changed }, t);
    assert.equal(view.text.replace(/^\$\(\S+\) /, ""), text);
    assert.equal(view.severity, severity);
    assert.equal(view.sentence, sentence);
  });
}

const PLACES: Places = {
  configured: "",
  searchPath: ["/a", "", "/b"].join(delimiter),
  own: "/own/dg-lsp",
  windows: false,
  home: "/home/me",
};

for (const [what, places, there, found] of [
  ["the setting goes first", { configured: "/x/dg" }, ["/x/dg", "/a/dg-lsp"], "/x/dg"],
  ["a setting may name the home folder", { configured: "~/dg" }, ["/home/me/dg"], "/home/me/dg"],
  ["the path goes before our own", {}, [join("/b", "dg-lsp"), "/own/dg-lsp"], join("/b", "dg-lsp")],
  ["our own is found", {}, ["/own/dg-lsp"], "/own/dg-lsp"],
  ["nothing is nothing", {}, [], undefined],
  ["a wrong setting is not passed over", { configured: "/x" }, ["/own/dg-lsp"], undefined],
] as [string, Partial<Places>, string[], string | undefined][]) {
  test(what, () => {
    const located = locate({ ...PLACES, ...places }, (path) => there.includes(path));
    assert.equal(located.kind === "found" ? located.path : undefined, found);
  });
}

test("a pause holds until it is lifted for that file", () => {
  const pauses = new Pauses();
  pauses.pauseFile("file:///a.py");
  pauses.pauseLanguage("go");
  assert.equal(pauses.of("file:///a.py", "python"), "file");
  assert.equal(pauses.of("file:///b.py", "python"), undefined);
  assert.equal(pauses.of("file:///b.go", "go"), "language");
  pauses.pauseAll();
  assert.equal(pauses.of("file:///b.py", "python"), "all");
  pauses.resume("file:///a.py", "python");
  assert.equal(pauses.of("file:///a.py", "python"), undefined);
  assert.equal(pauses.of("file:///b.go", "go"), "language");
});

test("a server is started again until it ends too often", () => {
  let now = 0;
  const crashes = new Crashes(() => now);
  assert.deepEqual(
    Array.from({ length: 5 }, () => crashes.another()),
    [true, true, true, true, false],
  );
  crashes.forget();
  assert.ok(crashes.another());
  for (let hour = 1; hour < 20; hour += 1) {
    now = hour * 3_600_000;
    assert.ok(crashes.another());
  }
});

test("a clock that is set by hours hides no end of the server, and keeps none", (context) => {
  const crashes = new Crashes();
  for (const jump of [36e6, -36e6]) {
    crashes.forget();
    for (let count = 1; count < 5; count += 1) assert.ok(crashes.another());
    const real = Date.now();
    context.mock.method(Date, "now", () => real + jump);
    assert.equal(crashes.another(), false);
  }
});

test("a line of the log keeps its level", () => {
  assert.equal(levelOf("WARNING dg_lsp.session: slow"), "warn");
  assert.equal(levelOf("INFO dg_lsp: up"), "info");
  assert.equal(levelOf("Traceback (most recent call last):"), "error");
});

test("a column on the command line counts characters", () => {
  assert.equal(placeArgument("/a.py", 4, "a😀b", 3), "/a.py:5:3");
});

const SIGNS: CopilotSigns = {
  isSwitchedOff: false,
  enabled: undefined,
  isInstalledActive: false,
  isBundledActive: false,
  accounts: 0,
};

for (const [what, signs, writes] of [
  ["nobody there", {}, false],
  ["installed and active", { isInstalledActive: true }, true],
  ["bundled, without an account", { isBundledActive: true }, false],
  ["bundled, with an account", { isBundledActive: true, accounts: 1 }, true],
  [
    "enabled for some languages",
    { isInstalledActive: true, enabled: { "*": false, go: true } },
    true,
  ],
  ["enabled for none", { isInstalledActive: true, enabled: { "*": false } }, false],
  ["switched off", { isInstalledActive: true, isSwitchedOff: true }, false],
] as [string, Partial<CopilotSigns>, boolean][]) {
  test(`Copilot ${what}: ${writes ? "a notice" : "silence"}`, () => {
    assert.equal(copilotWrites({ ...SIGNS, ...signs }), writes);
  });
}
