// The first minutes: no server, an invitation, the walkthrough, an installation, ghost text.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Editor, PYTHON, ROOT } from "./editor.mjs";

const TEXT = "def add(a, b):\n    \n";
const SCRIPT = { lines: ["    return a + b"], edits: {} };

let editor;
before(async () => {
  editor = await Editor.start({
    machine: ({ home, scripted }) => ({
      "dgLsp.server.python": PYTHON,
      "dgLsp.server.package": wheel(join(home, "wheel"), scripted),
    }),
  });
  editor.script(SCRIPT);
  await editor.open("example.py", TEXT);
});
after(() => editor?.close());

const toast = (text) => editor.page.locator(".notification-toast", { hasText: text });
const button = (text, label) => toast(text).locator(".monaco-button", { hasText: label });

test("without a server the status says so and the way to one is offered", async () => {
  await editor.until(() => editor.status(), "dg-lsp: not installed");
  await toast("needs its server").waitFor();
  await editor.shot("first-run");
});

test("the walkthrough shows the way", async () => {
  await button("needs its server", "Show me around").click();
  await editor.page.getByText("Get started with dg-lsp").first().waitFor();
  await editor.shot("walkthrough");
  await editor.page.locator('.tab[data-resource-name="example.py"]').click();
  await editor.page.locator('.tab.active[data-resource-name="example.py"]').waitFor();
});

test("Install makes an environment of its own, and ghost text comes", async () => {
  await editor.page.locator('.statusbar-item[id$="dgLsp.status"]').click();
  const rows = editor.page.locator(".quick-input-list .monaco-list-row");
  await rows.filter({ hasText: "Install the server" }).click();
  const seen = await editor.watchStatus();
  await editor.until(() => editor.status(), /^dg-tiny/, 60_000);
  const states = (await seen()).join("\n");
  assert.match(states, /loading/);
  await editor.focus();
  await editor.goto(2, 5);
  await editor.wake("return a + b");
  await editor.shot("installed");
});

/** A wheel whose `dg-lsp` is the scripted server; pip takes it without asking a registry. */
function wheel(folder, scripted) {
  mkdirSync(folder);
  const path = join(folder, "dg_lsp-0.0.1-py3-none-any.whl");
  const module = `import os, sys
def main():
    if sys.argv[1:] == ["--version"]:
        return print("dg-lsp 0.0.1")
    os.chdir(${JSON.stringify(ROOT)})
    os.execv(${JSON.stringify(PYTHON)}, [${JSON.stringify(PYTHON)}, "-m", "tests.editors.vscode.server", ${JSON.stringify(scripted)}])
`;
  const files = {
    "dg_lsp_stand_in.py": module,
    "dg_lsp-0.0.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: dg-lsp\nVersion: 0.0.1\n",
    "dg_lsp-0.0.1.dist-info/WHEEL":
      "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "dg_lsp-0.0.1.dist-info/entry_points.txt": "[console_scripts]\ndg-lsp = dg_lsp_stand_in:main\n",
    "dg_lsp-0.0.1.dist-info/RECORD": "",
  };
  writeFileSync(join(folder, "files.json"), JSON.stringify(files));
  const pack = `
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[2], "w") as wheel:
    for name, text in json.load(open(sys.argv[1])).items():
        wheel.writestr(name, text)
`;
  execFileSync(PYTHON, ["-c", pack, join(folder, "files.json"), path]);
  return path;
}
