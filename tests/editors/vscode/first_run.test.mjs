// The first minutes: no server, an invitation, the walkthrough, an installation, ghost text.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { Editor, PYTHON, ROOT } from "./editor.mjs";

const TEXT = "def add(a, b):\n    \n";
const SCRIPT = { lines: ["    return a + b"], edits: {} };
/** The version of PyTorch that is locked, and its builds: the one with CUDA has no name of its own. */
const [, TORCH] = /^torch==(\S+)/m.exec(
  readFileSync(join(ROOT, "requirements/torch.txt"), "utf8"),
);
const CPU = `${TORCH}+cpu`;

let editor;
before(async () => {
  editor = await Editor.start({
    machine: ({ home, scripted }) => {
      const elsewhere = packages(home);
      pack(elsewhere, "torch", CPU);
      return {
        "dgLsp.server.python": PYTHON,
        "dgLsp.server.package": server(join(home, "server"), scripted),
      };
    },
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

const rows = () => editor.page.locator(".quick-input-list .monaco-list-row");
const status = () => editor.page.locator('.statusbar-item[id$="dgLsp.status"]');

/** The builds of PyTorch in the environment of the extension. */
function installed() {
  const packages = join(editor.home, "data/User/globalStorage/*/venv/lib/*/site-packages");
  return globSync(join(packages, "torch-*.dist-info")).map((path) => basename(path)).join();
}

test("where pip finds no PyTorch for processors this is said, and nothing is left behind", async () => {
  await status().click();
  await rows().filter({ hasText: "Install the server" }).click();
  await rows().filter({ hasText: "With GPU" }).waitFor();
  await editor.shot("pytorch");
  await rows().filter({ hasText: "CPU" }).click();
  await toast("for processors where it looks").waitFor();
  await editor.until(() => editor.status(), "dg-lsp: not installed");
  assert.deepEqual(globSync(join(editor.home, "data/User/globalStorage/*/venv")), []);
});

test("Install makes an environment of its own with PyTorch from where one says, and ghost text comes", async () => {
  await button("for processors where it looks", "Say where").click();
  const box = editor.page.locator(".quick-input-widget input").first();
  await box.waitFor();
  await box.fill(join(editor.home, "elsewhere"));
  const seen = await editor.watchStatus();
  await editor.press("Enter");
  await editor.until(() => editor.status(), /^dg-tiny/, 60_000);
  const states = (await seen()).join("\n");
  assert.match(states, /loading/);
  assert.equal(installed(), `torch-${CPU}.dist-info`);
  await editor.focus();
  await editor.goto(2, 5);
  await editor.wake("return a + b");
  await editor.shot("installed");
});

test("installed again with GPU, the build that brings CUDA takes the place of the other", async () => {
  await editor.press("F1");
  await editor.type("dg-lsp: Install the Server");
  await editor.page.locator(".quick-input-list .monaco-list-row.focused").waitFor();
  await editor.press("Enter");
  await rows().filter({ hasText: "With GPU" }).click();
  await editor.until(() => installed(), `torch-${TORCH}.dist-info`, 60_000);
  await editor.until(() => editor.status(), /^dg-tiny/, 60_000);
});

/** Where pip looks, with PyTorch as it is found by itself; a folder where it does not look. */
function packages(home) {
  const pip = join(home, ".config/pip");
  const [known, elsewhere] = [join(home, "known"), join(home, "elsewhere")];
  for (const folder of [pip, known, elsewhere]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(pip, "pip.conf"), `[global]\nno-index = true\nfind-links = ${known}\n`);
  pack(known, "torch", TORCH);
  return elsewhere;
}

/** A wheel whose `dg-lsp` is the scripted server. */
function server(folder, scripted) {
  mkdirSync(folder);
  const module = `import os, sys
def main():
    if sys.argv[1:] == ["--version"]:
        return print("dg-lsp 0.0.1")
    os.chdir(${JSON.stringify(ROOT)})
    os.execv(${JSON.stringify(PYTHON)}, [${JSON.stringify(PYTHON)}, "-m", "tests.editors.vscode.server", ${JSON.stringify(scripted)}])
`;
  return pack(folder, "dg_lsp", "0.0.1", {
    "dg_lsp_stand_in.py": module,
    "dg_lsp-0.0.1.dist-info/entry_points.txt": "[console_scripts]\ndg-lsp = dg_lsp_stand_in:main\n",
  });
}

/** A wheel of this name and version; its path. */
function pack(folder, name, version, more = {}) {
  const path = join(folder, `${name}-${version}-py3-none-any.whl`);
  const about = `${name}-${version}.dist-info`;
  const files = {
    ...more,
    [`${about}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
    [`${about}/WHEEL`]: "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${about}/RECORD`]: "",
  };
  const script = `
import json, sys, zipfile
with zipfile.ZipFile(sys.argv[2], "w") as wheel:
    for name, text in json.loads(sys.argv[1]).items():
        wheel.writestr(name, text)
`;
  execFileSync(PYTHON, ["-c", script, JSON.stringify(files), path]);
  return path;
}
