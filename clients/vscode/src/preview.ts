// How a proposal looks in the editor: decorations beside and on the lines, and lenses above them.

import {
  CodeLens,
  type CodeLensProvider,
  commands,
  type DecorationOptions,
  Disposable,
  EventEmitter,
  l10n,
  languages,
  MarkdownString,
  OverviewRulerLane,
  Range,
  Selection,
  type TextDocument,
  type TextDocumentContentProvider,
  type TextEditor,
  ThemeColor,
  Uri,
  window,
  workspace,
} from "vscode";
import {
  type Draft,
  documentOf,
  type EditState,
  type InlineEdit,
  type Proposal,
} from "./inlineEdit.ts";
import { beside, type Layout } from "./text/beside.ts";
import { counts, unified } from "./text/lineDiff.ts";

const SCHEME = "dg-lsp-proposal";
const NBSP = "\u00a0";

export class Preview implements Disposable, CodeLensProvider, TextDocumentContentProvider {
  readonly #lenses = new EventEmitter<void>();
  readonly #proposals = new EventEmitter<Uri>();
  readonly onDidChangeCodeLenses = this.#lenses.event;
  readonly onDidChange = this.#proposals.event;

  readonly #removed = window.createTextEditorDecorationType({
    backgroundColor: new ThemeColor("dgLsp.removedLine"),
    overviewRulerColor: new ThemeColor("editorOverviewRuler.deletedForeground"),
    overviewRulerLane: OverviewRulerLane.Left,
  });
  readonly #added = window.createTextEditorDecorationType({
    after: { backgroundColor: new ThemeColor("dgLsp.addedLine"), fontStyle: "normal" },
  });
  readonly #same = window.createTextEditorDecorationType({
    after: { color: new ThemeColor("editorGhostText.foreground"), fontStyle: "normal" },
  });
  readonly #waiting = window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new ThemeColor("editor.wordHighlightBackground"),
  });
  readonly #all: Disposable;

  constructor(private readonly edit: InlineEdit) {
    this.#all = Disposable.from(
      this.#removed,
      this.#added,
      this.#same,
      this.#waiting,
      this.#lenses,
      this.#proposals,
      edit.onChange((state) => {
        if (state.kind === "previewing") this.#uncover(state.proposal);
        this.#draw();
      }),
      window.onDidChangeVisibleTextEditors(() => this.#draw()),
      languages.registerCodeLensProvider("*", this),
      workspace.registerTextDocumentContentProvider(SCHEME, this),
    );
  }

  dispose(): void {
    this.#all.dispose();
  }

  provideCodeLenses(document: TextDocument): CodeLens[] {
    const { state } = this.edit;
    if (documentOf(state) !== document) return [];
    if (state.kind === "editing") {
      const { range } = state.request;
      const words = state.draft
        ? l10n.t("Editing, step {0}", state.draft.step)
        : l10n.t("Editing…");
      return [
        lens(range, `$(loading~spin) ${words}`, ""),
        lens(range, l10n.t("Cancel"), "dgLsp.cancelEdit"),
      ];
    }
    if (state.kind !== "previewing") return [];
    const { range, milliseconds } = state.proposal;
    const { added, removed } = counts(layoutOf(document, state.proposal, 4).diff);
    const size = `+${added} −${removed} · ${milliseconds.toFixed(0)} ms`;
    return [
      lens(range, `$(check) ${l10n.t("Accept")}`, "dgLsp.acceptEdit"),
      lens(range, `$(close) ${l10n.t("Discard")}`, "dgLsp.discardEdit"),
      lens(range, `$(refresh) ${l10n.t("Retry…")}`, "dgLsp.retryEdit"),
      lens(range, size, "dgLsp.compareEdit"),
    ];
  }

  /** The whole document as it would be, for the diff editor. */
  provideTextDocumentContent(): string {
    const { state } = this.edit;
    if (state.kind !== "previewing") return "";
    const { document, range, newText } = state.proposal;
    const text = document.getText();
    const [start, end] = [document.offsetAt(range.start), document.offsetAt(range.end)];
    return text.slice(0, start) + newText + text.slice(end);
  }

  /** Open the proposal in the diff editor. */
  async compare(): Promise<void> {
    const { state } = this.edit;
    if (state.kind !== "previewing") return;
    const { document } = state.proposal;
    const name = document.uri.path.split("/").at(-1) ?? "";
    const proposed = Uri.from({ scheme: SCHEME, path: document.uri.path });
    this.#proposals.fire(proposed);
    const title = l10n.t("{0}: proposed edit", name);
    await commands.executeCommand("vscode.diff", document.uri, proposed, title);
  }

  /** Take the selection off the lines, for its colour would hide ours. */
  #uncover({ document, range }: Proposal): void {
    for (const editor of window.visibleTextEditors) {
      const isCovered = editor.document === document && !editor.selection.isEmpty;
      if (isCovered && editor.selection.intersection(range)) {
        editor.selection = new Selection(range.start, range.start);
      }
    }
  }

  #draw(): void {
    for (const editor of window.visibleTextEditors) this.#drawIn(editor);
    this.#lenses.fire();
  }

  #drawIn(editor: TextEditor): void {
    const { state } = this.edit;
    const isShown = documentOf(state) === editor.document;
    const change = state.kind === "editing" ? state.draft : shownChange(state);
    const waiting = isShown && state.kind === "editing" && !change ? [state.request.range] : [];
    const marks = isShown && change ? marksOf(change, editor) : NO_MARKS;
    editor.setDecorations(this.#waiting, waiting);
    editor.setDecorations(this.#removed, marks.removed);
    editor.setDecorations(this.#added, marks.added);
    editor.setDecorations(this.#same, marks.same);
  }
}

/** What is drawn: a proposal, or a draft of one. */
type Change = Pick<Draft, "range" | "oldText" | "newText">;

function shownChange(state: EditState): Change | undefined {
  return state.kind === "previewing" ? state.proposal : undefined;
}

interface Marks {
  readonly removed: DecorationOptions[];
  readonly added: DecorationOptions[];
  readonly same: DecorationOptions[];
}

const NO_MARKS: Marks = { removed: [], added: [], same: [] };

function marksOf(change: Change, editor: TextEditor): Marks {
  const { document } = editor;
  const tabSize = Number(editor.options.tabSize) || 4;
  const layout = layoutOf(document, change, tabSize);
  const hoverMessage = hoverOf(layout);
  const marks: Marks = { removed: [], added: [], same: [] };
  for (const { line, removed, beside: text } of layout.rows) {
    const at = document.lineAt(change.range.start.line + line).range;
    if (removed) marks.removed.push({ range: at, hoverMessage });
    if (text === undefined) continue;
    const options = {
      // Blanks as they are: a pseudo-element would fold them.
      contentText: text.text.replaceAll(" ", NBSP),
      margin: `0 0 0 ${text.gap}ch`,
    };
    const where = new Range(at.end, at.end);
    const mark = { range: where, renderOptions: { after: options }, hoverMessage };
    (text.added ? marks.added : marks.same).push(mark);
  }
  if (layout.hidden > 0) {
    const at = document.lineAt(document.lineCount - 1).range.end;
    const contentText = l10n.t("… and {0} more lines", layout.hidden).replaceAll(" ", NBSP);
    const after = { contentText, margin: "0 0 0 2ch" };
    marks.same.push({ range: new Range(at, at), renderOptions: { after }, hoverMessage });
  }
  return marks;
}

function layoutOf(
  document: TextDocument,
  { range, oldText, newText }: Change,
  tabSize: number,
): Layout {
  const old = linesOf(oldText);
  const proposed = linesOf(newText);
  const following: string[] = [];
  const wanted = range.end.line + 1 + Math.max(0, proposed.length - old.length);
  for (let line = range.end.line + 1; line < Math.min(document.lineCount, wanted); line += 1) {
    following.push(document.lineAt(line).text);
  }
  return beside(old, proposed, following, tabSize);
}

function hoverOf(layout: Layout): MarkdownString {
  return new MarkdownString().appendCodeblock(unified(layout.diff), "diff");
}

function linesOf(text: string): string[] {
  return text.split(/\r\n|\r|\n/);
}

function lens(range: Range, title: string, command: string): CodeLens {
  return new CodeLens(new Range(range.start, range.start), { title, command });
}
