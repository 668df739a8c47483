// How a next edit looks: a mark in the gutter, the edit in its line, and where it is from afar.

import {
  type DecorationOptions,
  Disposable,
  l10n,
  MarkdownString,
  OverviewRulerLane,
  Range,
  StatusBarAlignment,
  type TextEditor,
  ThemeColor,
  type Uri,
  window,
} from "vscode";
import { isInSight, type NextEdit, type Shown } from "./nextEdit.ts";
import { lineDiff, unified } from "./text/lineDiff.ts";
import { made } from "./text/nextEdit.ts";

const NBSP = "\u00a0";

export class NextEditView implements Disposable {
  readonly #mark;
  readonly #old = window.createTextEditorDecorationType({
    textDecoration: "line-through",
    backgroundColor: new ThemeColor("dgLsp.removedLine"),
  });
  readonly #new = window.createTextEditorDecorationType({
    after: {
      backgroundColor: new ThemeColor("dgLsp.addedLine"),
      fontStyle: "italic",
    },
  });
  readonly #away = window.createTextEditorDecorationType({
    after: { color: new ThemeColor("editorGhostText.foreground"), margin: "0 0 0 3ch" },
  });
  readonly #item = window.createStatusBarItem("dgLsp.nextEdit", StatusBarAlignment.Right, 99);
  readonly #all: Disposable;
  readonly #drawn = new Set<TextEditor>();

  /** @param icon the file of the mark, for a dark or a light theme */
  constructor(
    private readonly next: NextEdit,
    icon: (theme: "dark" | "light") => Uri,
  ) {
    this.#mark = window.createTextEditorDecorationType({
      dark: { gutterIconPath: icon("dark") },
      light: { gutterIconPath: icon("light") },
      gutterIconSize: "contain",
      overviewRulerColor: new ThemeColor("editorOverviewRuler.addedForeground"),
      overviewRulerLane: OverviewRulerLane.Left,
    });
    this.#item.name = l10n.t("dg-lsp: next edit");
    this.#item.command = "dgLsp.nextEdit";
    this.#item.tooltip = l10n.t("Go to the next edit.");
    this.#all = Disposable.from(
      this.#mark,
      this.#old,
      this.#new,
      this.#away,
      this.#item,
      next.onChange(() => this.#draw()),
      window.onDidChangeTextEditorVisibleRanges(() => this.#draw()),
      window.onDidChangeTextEditorSelection(() => this.#draw()),
      window.onDidChangeVisibleTextEditors(() => this.#draw()),
    );
  }

  dispose(): void {
    this.#all.dispose();
  }

  #draw(): void {
    const { shown } = this.next;
    for (const editor of this.#drawn) {
      if (editor.document !== shown?.document) this.#clear(editor);
    }
    if (shown === undefined) {
      this.#item.hide();
      return;
    }
    for (const editor of window.visibleTextEditors) {
      if (editor.document === shown.document) this.#drawIn(editor, shown);
    }
  }

  #drawIn(editor: TextEditor, shown: Shown): void {
    const { range, text } = shown.visible;
    const hoverMessage = hoverOf(shown);
    const contentText = expanded(text, Number(editor.options.tabSize) || 4);
    const after = { contentText };
    const coming = { range, hoverMessage, renderOptions: { after } };
    editor.setDecorations(this.#mark, [{ range, hoverMessage }]);
    editor.setDecorations(this.#old, range.isEmpty ? [] : [range]);
    editor.setDecorations(this.#new, text === "" ? [] : [coming]);
    const isAway = !isInSight(editor, shown.line);
    editor.setDecorations(this.#away, isAway ? [hint(editor, shown.line)] : []);
    this.#drawn.add(editor);
    if (editor !== window.activeTextEditor) return;
    this.#item.text = wordsFor(editor, shown.line, "$(arrow-up)", "$(arrow-down)");
    if (isAway) this.#item.show();
    else this.#item.hide();
  }

  #clear(editor: TextEditor): void {
    this.#drawn.delete(editor);
    if (!window.visibleTextEditors.includes(editor)) return;
    for (const type of [this.#mark, this.#old, this.#new, this.#away]) {
      editor.setDecorations(type, []);
    }
  }
}

/** Behind the cursor's line: where the edit is. */
function hint(editor: TextEditor, line: number): DecorationOptions {
  const { end } = editor.document.lineAt(editor.selection.active.line).range;
  const contentText = wordsFor(editor, line, "↑", "↓").replaceAll(" ", NBSP);
  return { range: new Range(end, end), renderOptions: { after: { contentText } } };
}

function wordsFor(editor: TextEditor, line: number, above: string, below: string): string {
  const arrow = line < editor.selection.active.line ? above : below;
  return `${arrow} ${l10n.t("Next edit: line {0}", line + 1)}`;
}

function hoverOf({ lineText, range, text }: Shown): MarkdownString {
  const edit = { start: range.start.character, end: range.end.character, text };
  const diff = unified(lineDiff([lineText], [made(lineText, edit)]));
  return new MarkdownString().appendCodeblock(diff, "diff");
}

/** Blanks as they are: a pseudo-element would fold them. */
function expanded(text: string, tabSize: number): string {
  return text.replaceAll("\t", " ".repeat(tabSize)).replaceAll(" ", NBSP);
}
