// The status bar item: the model, what it does, how quick it is, and a menu.

import {
  commands,
  type Disposable,
  l10n,
  MarkdownString,
  type QuickPickItem,
  QuickPickItemKind,
  StatusBarAlignment,
  type StatusBarItem,
  ThemeColor,
  window,
} from "vscode";
import { type Severity, type Shown, viewOf } from "./statusView.ts";

interface Choice extends QuickPickItem {
  readonly command?: string;
  readonly arguments?: readonly unknown[];
}

const COLORS: Readonly<Record<Severity, string | undefined>> = {
  none: undefined,
  warning: "statusBarItem.warningBackground",
  error: "statusBarItem.errorBackground",
};

export class StatusItem implements Disposable {
  readonly #item: StatusBarItem;
  #shown: Shown;

  constructor(shown: Shown) {
    this.#shown = shown;
    this.#item = window.createStatusBarItem("dgLsp.status", StatusBarAlignment.Right, 100);
    this.#item.name = "dg-lsp";
    this.#item.command = "dgLsp.menu";
    this.#draw();
    this.#item.show();
  }

  get shown(): Shown {
    return this.#shown;
  }

  dispose(): void {
    this.#item.dispose();
  }

  /** Change what is shown. */
  update(changed: Partial<Shown>): void {
    this.#shown = { ...this.#shown, ...changed };
    this.#draw();
  }

  /** The menu behind the item; it says whether next edits are proposed. */
  async menu(nextEdits: boolean): Promise<void> {
    const { sentence } = viewOf(this.#shown, l10n.t);
    const chosen = await window.showQuickPick(choicesFor(this.#shown, nextEdits), {
      title: "dg-lsp",
      placeHolder: sentence,
    });
    if (chosen?.command) await commands.executeCommand(chosen.command, ...(chosen.arguments ?? []));
  }

  #draw(): void {
    const { text, severity, sentence } = viewOf(this.#shown, l10n.t);
    const color = COLORS[severity];
    this.#item.text = text;
    this.#item.backgroundColor = color === undefined ? undefined : new ThemeColor(color);
    const tooltip = new MarkdownString().appendText(sentence);
    tooltip.appendText(`\n\n${l10n.t("Click for pauses, the log and a restart.")}`);
    this.#item.tooltip = tooltip;
    this.#item.accessibilityInformation = { label: `dg-lsp, ${sentence}`, role: "button" };
  }
}

function choicesFor({ run, pause }: Shown, nextEdits: boolean): Choice[] {
  const missing = run === "missing" ? [INSTALL()] : [];
  const pauses = pause === undefined ? PAUSES() : [RESUME()];
  return [...missing, ...pauses, NEXT_EDITS(nextEdits), LINE(), ...TOOLS()];
}

const INSTALL = (): Choice => ({
  label: `$(cloud-download) ${l10n.t("Install the server…")}`,
  command: "dgLsp.install",
});
const RESUME = (): Choice => ({
  label: `$(play) ${l10n.t("Resume suggestions")}`,
  command: "dgLsp.resume",
});
const PAUSES = (): Choice[] => [
  { label: `$(debug-pause) ${l10n.t("Pause for this file")}`, command: "dgLsp.pauseFile" },
  { label: `$(debug-pause) ${l10n.t("Pause for this language")}`, command: "dgLsp.pauseLanguage" },
  { label: `$(debug-pause) ${l10n.t("Pause for this session")}`, command: "dgLsp.pauseAll" },
];
const NEXT_EDITS = (isOn: boolean): Choice => ({
  label: isOn
    ? `$(circle-slash) ${l10n.t("Stop proposing next edits")}`
    : `$(arrow-right) ${l10n.t("Propose next edits")}`,
  command: "dgLsp.toggleNextEdit",
});
const LINE = (): Choice => ({ label: "", kind: QuickPickItemKind.Separator });
const TOOLS = (): Choice[] => [
  { label: `$(sparkle) ${l10n.t("Edit with instruction…")}`, command: "dgLsp.edit" },
  { label: `$(question) ${l10n.t("Explain this place")}`, command: "dgLsp.explain" },
  { label: `$(chip) ${l10n.t("Choose a model…")}`, command: "dgLsp.chooseModel" },
  { label: `$(output) ${l10n.t("Open the log")}`, command: "dgLsp.openLog" },
  { label: `$(debug-restart) ${l10n.t("Restart the server")}`, command: "dgLsp.restart" },
  {
    label: `$(gear) ${l10n.t("Settings")}`,
    command: "workbench.action.openSettings",
    arguments: ["dgLsp."],
  },
];
