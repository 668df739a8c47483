// From a packaged extension and a wheel, in an empty home, to the first ghost text: what a user does,
// and how long each step takes. `run.sh --run fresh.mjs WHEEL PYTHON TORCH FILE`, for bench/fresh.py;
// prints JSON. TORCH is what pip is held to, as `torch==2.13.0`; where packages come from is what pip
// is told in the home of who measures. FILE holds `text`, and `typed` at its end, as JSON.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { Editor } from "./editor.mjs";

const [wheel, python, torch, file] = process.argv.slice(2);
const { text, typed } = JSON.parse(readFileSync(file, "utf8"));
/** Fetching PyTorch takes minutes on a slow line. */
const INSTALL_MS = 20 * 60_000;
const LOADING_MS = 120_000;

const steps = [];
let last = performance.now();
function step(does, { commands = 0, clicks = 0, keys = 0 }) {
  const now = performance.now();
  steps.push({ does, commands, clicks, keys, seconds: (now - last) / 1e3 });
  last = now;
}

const editor = await Editor.start({
  beside: (extensions) => {
    const home = join(extensions, "..");
    symlinkSync(python, join(home, "bin", "python3"));
    const pip = join(home, ".config/pip");
    mkdirSync(pip, { recursive: true });
    writeFileSync(join(pip, "torch.txt"), `${torch}\n`);
    const own = join(homedir(), ".config/pip/pip.conf");
    const told = existsSync(own) ? readFileSync(own, "utf8") : "";
    const held = `[install]\nconstraint = ${join(pip, "torch.txt")}\n`;
    writeFileSync(join(pip, "pip.conf"), `${told}\n${held}`);
  },
});
try {
  steps.push({
    ...{ does: "`code --install-extension dg-lsp.vsix`", commands: 1, clicks: 0, keys: 0 },
    seconds: editor.installSeconds,
  });
  last = performance.now();
  await editor.open("figures.py", text);
  const toast = editor.page.locator(".notification-toast", { hasText: "needs its server" });
  await toast.waitFor({ timeout: LOADING_MS });
  step("open a Python file; the notice comes", { clicks: 1 });

  await toast.locator(".monaco-button", { hasText: "Install" }).click();
  const rows = editor.page.locator(".quick-input-list .monaco-list-row");
  await rows.filter({ hasText: "A wheel" }).click();
  // The editor's own dialog for files: it begins with a folder's path, and looks up what is typed.
  const dialog = editor.page.locator(".quick-input-widget");
  const box = dialog.locator("input[type=text]").first();
  await editor.until(() => box.inputValue(), /^\//);
  await editor.until(async () => {
    await box.fill(wheel);
    await editor.press("Enter");
    return editor.reaches(() => rows.filter({ hasText: "CPU" }).isVisible(), true, 2000);
  }, true);
  await rows.filter({ hasText: "CPU" }).click();
  await editor.until(() => editor.status(), /loading|^dg-tiny/, INSTALL_MS);
  const does = "_Install_, _A wheel…_, choose it, _CPU_; the server and PyTorch are installed";
  step(does, { clicks: 4 });

  await editor.until(() => editor.status(), /^dg-tiny( ·|$)/, LOADING_MS);
  step("the model is loaded", {});

  await editor.focus();
  await editor.press("Control+End");
  last = performance.now();
  let shown = false;
  for (const [index, letter] of [...typed].entries()) {
    await editor.type(letter);
    shown = await editor.reaches(() => editor.ghost(), (ghost) => ghost !== "", 3000);
    if (shown) {
      step("type; the first ghost text stands there", { keys: index + 1 });
      break;
    }
  }
  if (!shown) throw new Error(`no ghost text: ${await editor.sentence()}`);
  await editor.shot("fresh");
  console.log(JSON.stringify(steps));
} catch (error) {
  await editor.shot("fresh-failure").catch(() => {});
  throw error;
} finally {
  await editor.close();
}
