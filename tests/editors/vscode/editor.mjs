// VS Code for tests: code-server with our packaged extension, and its window in Chromium.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
export const ROOT = join(HERE, "..", "..", "..");
export const PYTHON = join(ROOT, ".venv", "bin", "python");
export const SHOTS = join(HERE, "shots");
const CACHE = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");
const FOLDER = process.env.DG_VSCODE ?? join(CACHE, "dg-lsp-editors", "vscode");
const CODE_SERVER = join(FOLDER, "editor/node_modules/code-server/out/node/entry.js");
const VSIX = join(ROOT, "clients/vscode/dist/dg-lsp.vsix");
/** A folder in which the editor has installed the package already; else each window does so. */
const INSTALLED = process.env.DG_VSCODE_EXTENSIONS;
const { chromium } = createRequire(join(FOLDER, "tools/"))("playwright-core");

/** Long enough for a machine that does other things as well. */
const WAIT_MS = 30_000;
const QUIET = {
  "chat.disableAIFeatures": true,
  "editor.fontFamily": "DejaVu Sans Mono",
  "editor.minimap.enabled": false,
  "editor.quickSuggestions": { other: "off", comments: "off", strings: "off" },
  "extensions.autoUpdate": false,
  "files.autoSave": "off",
  "git.enabled": false,
  "telemetry.telemetryLevel": "off",
  "window.menuBarVisibility": "hidden",
  "workbench.colorTheme": "Default Dark Modern",
  "workbench.editor.useModal": "off",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
  "workbench.tips.enabled": false,
};

/** A window of VS Code. */
export class Editor {
  static async start({
    settings = {},
    machine = () => ({}),
    beside = () => {},
    script,
    program,
    viewport,
  } = {}) {
    const editor = new Editor();
    editor.home = mkdtempSync(join(tmpdir(), "dg-vscode-"));
    editor.workspace = join(editor.home, "project");
    editor.scripted = join(editor.home, "scripted");
    const folders = [
      "project",
      "scripted",
      "bin",
      "run",
      "data/User",
      "data/Machine",
      "extensions",
    ];
    for (const name of folders) mkdirSync(join(editor.home, name), { recursive: true });
    editor.settings = { ...QUIET, ...settings };
    editor.#write("data/User/settings.json", JSON.stringify(editor.settings));
    editor.#write("data/Machine/settings.json", JSON.stringify(machine(editor)));
    editor.#write("config.yaml", "");
    // Extensions of others.
    beside(join(editor.home, "extensions"));
    if (script) editor.script(script);
    if (script || program) editor.#writeProgram(program);
    await editor.#serve();
    await editor.#browse(viewport ?? { width: 1000, height: 560 });
    return editor;
  }

  /** Change what the scripted engine says. */
  script(script) {
    writeFileSync(join(this.scripted, "script.json"), JSON.stringify(script));
  }

  /** Change settings as people do, in the editor: theirs, or those of the machine. */
  async configure(settings, whose = "User") {
    const back = await this.page.locator(".tab.active").getAttribute("data-resource-name");
    await this.command(`Preferences: Open ${whose} Settings (JSON)`);
    await this.page.locator('.tab.active[data-resource-name="settings.json"]').waitFor();
    await this.focus();
    const all = whose === "User" ? { ...this.settings, ...settings } : settings;
    const wanted = JSON.stringify(all);
    const path = join(this.home, "data", whose === "User" ? "User" : "Machine", "settings.json");
    // The tab is there before its text, so what was selected may have been less than all of it.
    await this.until(async () => {
      await this.press("Control+a");
      // In one line, for the editor would indent others; what it closes by itself goes again.
      await this.page.keyboard.insertText(wanted);
      await this.press("Control+Shift+End", "Delete", "Control+s");
      await this.page.locator(".tab.active.dirty").waitFor({ state: "detached" });
      return readFileSync(path, "utf8");
    }, wanted);
    await this.page.locator(`.tab[data-resource-name="${back}"]`).click();
    await this.focus();
  }

  async close() {
    await this.shot(`last-${basename(process.argv[1], ".test.mjs")}`).catch(() => {});
    await this.browser?.close();
    if (this.server && this.server.exitCode === null) {
      // The group, for the extension host and the language server are children of it.
      process.kill(-this.server.pid, "SIGTERM");
      await once(this.server, "exit");
    }
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  }

  /** Open a file with this text, the cursor at its beginning. */
  async open(name, text) {
    await this.#visit(name, text);
    await this.page.locator(".editor-instance .view-lines").first().waitFor();
    await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
    await this.focus();
    await this.press("Control+Home");
  }

  /** Open a notebook, the cursor in its n-th cell of code. */
  async openNotebook(name, text, cell) {
    await this.#visit(name, text);
    const lines = this.page.locator(".notebookOverlay .code-cell-row .view-lines").nth(cell - 1);
    await lines.waitFor();
    await lines.click();
    await this.page.locator(".notebookOverlay .monaco-editor.focused").waitFor();
  }

  /** Load the window with this file in it. */
  async #visit(name, text) {
    writeFileSync(join(this.workspace, name), text);
    const remote = `vscode-remote://127.0.0.1:${this.port}${this.workspace}/${name}`;
    const payload = encodeURIComponent(JSON.stringify([["openFile", remote]]));
    await this.page.goto(`${this.url}/?folder=${this.workspace}&payload=${payload}`);
  }

  async focus() {
    await this.page.keyboard.press("Control+1");
    await this.page.locator(".editor-instance .monaco-editor.focused").first().waitFor();
  }

  async press(...keys) {
    for (const key of keys) await this.page.keyboard.press(key);
  }

  async type(text, delay = 0) {
    await this.page.keyboard.type(text, { delay });
  }

  /** Put the cursor at line:column, from 1. */
  async goto(line, column) {
    const widget = this.page.locator(".quick-input-widget");
    const box = widget.locator("input:focus");
    await this.press("Control+g");
    await box.waitFor();
    await this.until(() => box.inputValue(), ":");
    await this.type(`${line}:${column}`);
    await widget.locator(".monaco-list-row", { hasText: `${line} ` }).waitFor();
    await this.press("Enter");
    await widget.waitFor({ state: "hidden" });
  }

  /**
   * Open the menu of the bulb, and give the action of this name. The editor looks for actions by
   * itself a moment after the cursor moved, and drops what was asked for in between; people press the
   * keys again.
   */
  async bulb(hasText) {
    const row = this.page.locator(".action-widget .monaco-list-row", { hasText }).first();
    await this.until(async () => {
      await this.press("Control+.");
      return this.reaches(() => row.isVisible(), true, 3000);
    }, true);
    return row;
  }

  /** Run a command by its title, with what to type into the box that it opens. */
  async command(title, answer) {
    await this.press("F1");
    const box = this.page.locator(".quick-input-widget input").first();
    await box.waitFor();
    await this.type(title);
    await this.page.locator(".quick-input-list .monaco-list-row.focused").waitFor();
    await this.press("Enter");
    if (answer !== undefined) {
      await box.waitFor();
      await this.type(answer);
      await this.press("Enter");
    }
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
  }

  /** Choose from the menu of our status bar item. */
  async choose(label) {
    await this.page.locator('.statusbar-item[id$="dgLsp.status"]').click();
    await this.page.locator(".quick-input-widget input").waitFor();
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: label }).click();
    await this.page.locator(".quick-input-widget").waitFor({ state: "hidden" });
    await this.focus();
  }

  /** The ghost text; empty when there is none. */
  async ghost() {
    // The first line is a span for each colour.
    const editors = ":is(.editor-instance, .notebookOverlay)";
    const first = this.page.locator(`${editors} .ghost-text-decoration`);
    const further = this.page.locator(`${editors} .suggest-preview-text .view-line`);
    const lines = [(await first.allTextContents()).join(""), ...(await further.allTextContents())];
    return lines.join("\n").replaceAll("\u00a0", " ");
  }

  async untilGhost(text) {
    await this.until(() => this.ghost(), text);
  }

  /** Type a letter and take it back until suggestions come: the extension is up a little later. */
  async wake(text, milliseconds = 2 * WAIT_MS) {
    const end = Date.now() + milliseconds;
    await this.reaches(() => this.status(), /^dg-tiny( ·|$)/, milliseconds / 2);
    // What stands there already must not be typed over: it would not be offered again.
    if (await this.reaches(() => this.ghost(), text, 500)) return;
    while (Date.now() < end) {
      await this.press("x", "Backspace");
      if (await this.reaches(() => this.ghost(), text, 4000)) return;
    }
    throw new Error(`no ghost text "${text}", status "${await this.status()}"`);
  }

  /** The text in the editor, as the window shows it: looked at in one moment, for lines come and go. */
  async text() {
    return this.page.evaluate(() => {
      const ghosts = ".ghost-text-decoration, .ghost-text-decoration-preview";
      const lines = [...document.querySelectorAll(".editor-instance .view-lines > .view-line")];
      return lines
        .map((node) => {
          const clone = node.cloneNode(true);
          for (const ghost of clone.querySelectorAll(ghosts)) ghost.remove();
          return { top: Number.parseFloat(node.style.top), text: clone.textContent ?? "" };
        })
        .sort((a, b) => a.top - b.top)
        .map(({ text }) => text.replaceAll("\u00a0", " ").replaceAll("\u200b", ""))
        .join("\n");
    });
  }

  /** The text as saved. */
  async saved(name) {
    await this.press("Control+s");
    await this.page.locator(".tab.active.dirty").waitFor({ state: "detached" });
    return this.onDisk(name);
  }

  onDisk(name) {
    return readFileSync(join(this.workspace, name), "utf8");
  }

  /** The words of our status bar item. */
  async status() {
    const item = this.page.locator('.statusbar-item[id$="dgLsp.status"]');
    return (await item.count()) === 0 ? "" : (await item.textContent()).trim();
  }

  /** What it says to those who cannot see it. */
  async sentence() {
    const item = this.page.locator('.statusbar-item[id$="dgLsp.status"] a');
    return item.getAttribute("aria-label");
  }

  /** All that the scripted model was shown since it was told to forget. */
  prompts() {
    const path = join(this.scripted, "prompts.txt");
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  forgetPrompts() {
    rmSync(join(this.scripted, "prompts.txt"), { force: true });
  }

  /** Everything that the status bar item says from now on. */
  async watchStatus() {
    await this.page.evaluate(() => {
      const item = document.querySelector('.statusbar-item[id$="dgLsp.status"]');
      globalThis.statuses = [];
      new MutationObserver(() => globalThis.statuses.push(item.textContent.trim())).observe(item, {
        subtree: true,
        childList: true,
        characterData: true,
      });
    });
    return () => this.page.evaluate(() => globalThis.statuses);
  }

  /** Every ghost text that was drawn from now on, frame by frame. */
  async watchGhost() {
    await this.page.evaluate(() => {
      globalThis.ghosts = [];
      const look = () => {
        const parts = document.querySelectorAll(".editor-instance .ghost-text-decoration");
        const text = [...parts].map((part) => part.textContent).join("");
        globalThis.ghosts.push(text.replaceAll("\u00a0", " "));
        globalThis.ghostFrame = requestAnimationFrame(look);
      };
      look();
    });
    return () =>
      this.page.evaluate(() => {
        cancelAnimationFrame(globalThis.ghostFrame);
        return globalThis.ghosts;
      });
  }

  async shot(name) {
    mkdirSync(SHOTS, { recursive: true });
    await this.page.screenshot({ path: join(SHOTS, `${name}.png`) });
  }

  /** Wait until a value is (or matches, or passes) what is expected. */
  async until(get, expected, milliseconds = WAIT_MS) {
    if (await this.reaches(get, expected, milliseconds)) return;
    await this.shot("failure");
    throw new Error(`expected ${expected}, got ${JSON.stringify(await get())}`);
  }

  async reaches(get, expected, milliseconds) {
    const end = Date.now() + milliseconds;
    do {
      if (fits(await get(), expected)) return true;
      await this.page.waitForTimeout(40);
    } while (Date.now() < end);
    return false;
  }

  pid(name) {
    return Number(readFileSync(join(this.scripted, `${name}.pid`), "utf8"));
  }

  #write(name, text) {
    writeFileSync(join(this.home, name), text);
  }

  /** The `dg-lsp` that the extension finds on the PATH. */
  #writeProgram(program) {
    const path = join(this.home, "bin", "dg-lsp");
    writeFileSync(path, program ?? scriptedProgram(this.scripted));
    chmodSync(path, 0o755);
  }

  async #serve() {
    this.port = await freePort();
    this.url = `http://127.0.0.1:${this.port}`;
    const own = ["--user-data-dir", join(this.home, "data"), "--config"];
    own.push(join(this.home, "config.yaml"), "--extensions-dir", join(this.home, "extensions"));
    if (!existsSync(VSIX)) throw new Error(`${VSIX} is missing; run: npm run package`);
    if (INSTALLED) {
      cpSync(INSTALLED, join(this.home, "extensions"), { recursive: true });
    } else {
      const install = [CODE_SERVER, ...own, "--install-extension", VSIX];
      const began = performance.now();
      execFileSync(process.execPath, install, { stdio: "ignore" });
      this.installSeconds = (performance.now() - began) / 1e3;
    }
    const flags = ["--auth", "none", "--bind-addr", `127.0.0.1:${this.port}`];
    for (const off of ["telemetry", "update-check", "workspace-trust"])
      flags.push(`--disable-${off}`);
    flags.push("--disable-getting-started-override", this.workspace);
    // The editor takes its environment from a login shell, as people's do.
    const profile = `export PATH=${join(this.home, "bin")}:/usr/local/bin:/usr/bin:/bin\n`;
    writeFileSync(join(this.home, ".profile"), profile);
    this.server = spawn(process.execPath, [CODE_SERVER, ...own, ...flags], {
      detached: true,
      env: {
        HOME: this.home,
        SHELL: "/bin/bash",
        PATH: "/usr/local/bin:/usr/bin:/bin",
        // An engine that windows share is none of those that people have.
        XDG_RUNTIME_DIR: join(this.home, "run"),
      },
      stdio: ["ignore", "pipe", process.env.DG_VSCODE_LOG ? "inherit" : "ignore"],
    });
    for await (const line of createInterface(this.server.stdout)) {
      if (line.includes("HTTP server listening")) break;
    }
    this.server.stdout.resume();
  }

  async #browse(viewport) {
    const names = ["chromium", "chromium-browser", "google-chrome"];
    const executablePath = names.map((name) => `/usr/bin/${name}`).find(existsSync);
    this.browser = await chromium.launch({
      executablePath,
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"].concat(
        ["background-networking", "component-update", "sync"].map((off) => `--disable-${off}`),
      ),
    });
    const context = await this.browser.newContext({ viewport, colorScheme: "dark" });
    this.page = await context.newPage();
    this.page.setDefaultTimeout(WAIT_MS);
  }
}

function fits(value, expected) {
  if (expected instanceof RegExp) return expected.test(value);
  return typeof expected === "function" ? expected(value) : value === expected;
}

function scriptedProgram(folder) {
  return `#!/bin/sh
case $1 in
  --stdio) cd '${ROOT}' && exec '${PYTHON}' -m tests.editors.vscode.server '${folder}' ;;
  model) printf '%s\\n' 'dg-tiny     27.0 MiB  /models/dg-tiny' 'dg-large   900.0 MiB  /models/dg-large' ;;
  *) echo "dg-lsp $*" ;;
esac
`;
}

async function freePort() {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address();
  listener.close();
  await once(listener, "close");
  return port;
}
