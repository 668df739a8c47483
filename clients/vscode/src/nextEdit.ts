// Next edits: asked for when an edit pauses, kept while they fit, gone to, made or dismissed.

import {
  CancellationTokenSource,
  commands,
  Disposable,
  EventEmitter,
  type LogOutputChannel,
  l10n,
  languages,
  Range,
  Selection,
  type TextDocument,
  type TextDocumentChangeEvent,
  TextDocumentChangeReason,
  type TextEditor,
  TextEditorRevealType,
  type Uri,
  window,
  workspace,
} from "vscode";
import type { Command, LanguageClient } from "vscode-languageclient/node";
import { NextEditServer, type Proposed, troublesOf } from "./nextEditServer.ts";
import { Questions } from "./questions.ts";
import {
  added,
  causeOf,
  followed,
  headOfWord,
  indents,
  type Kept,
  type LineEdit,
  readable,
  tailOfWord,
} from "./text/nextEdit.ts";
import type { Region } from "./text/region.ts";

/** Somebody who types has shorter pauses between two keys. */
const PAUSE_MS = 250;
/** Of one document; the oldest is forgotten. */
const MOST_KEPT = 8;

interface Proposal extends Kept {
  readonly command: Command | undefined;
}

/** What was edited in a document, and what is proposed for it. */
interface Page {
  /** Since the last question. */
  readonly cause: Region | undefined;
  /** The last one is shown. */
  readonly proposals: readonly Proposal[];
}

/** A proposal where it stands now. */
export interface Shown {
  readonly document: TextDocument;
  readonly line: number;
  readonly lineText: string;
  /** What is replaced, and by what. */
  readonly range: Range;
  readonly text: string;
  /** The same for the eye. */
  readonly visible: { readonly range: Range; readonly text: string };
}

/** A version for which nothing was proposed. */
interface Unanswered {
  readonly document: TextDocument;
  readonly version: number;
  readonly cause: Region;
  /** What was found wrong when it was asked about. */
  readonly troubles: string;
}

export interface Surroundings {
  readonly client: () => LanguageClient | undefined;
  /** Whether next edits are wanted in a document. */
  readonly isWanted: (document: TextDocument) => boolean;
  /** Whether something else is shown that has the same keys. */
  readonly isBusy: () => boolean;
  readonly log: LogOutputChannel;
}

const EMPTY: Page = { cause: undefined, proposals: [] };

export class NextEdit implements Disposable {
  readonly #pages = new Map<TextDocument, Page>();
  readonly #context = new Map<string, boolean>();
  readonly #changes = new EventEmitter<void>();
  readonly #questions: Questions;
  readonly #server: NextEditServer;
  readonly #watching: Disposable;
  readonly onChange = this.#changes.event;
  /** The last question, as long as it brought nothing. */
  #unanswered: Unanswered | undefined;
  /** What is asked about, or will be. */
  #subject: TextDocument | undefined;
  /** An edit is being made. */
  #isMaking = false;
  /** One is made or was, and what comes next is asked for; meanwhile nothing else is shown. */
  #isTaking = false;
  /** What the cursor was brought to, before the editor says that it is in sight. */
  #reached: Proposal | undefined;
  /** Keys one after another. */
  #turn: Promise<void> = Promise.resolve();

  constructor(private readonly around: Surroundings) {
    this.#server = new NextEditServer(around.client, around.log);
    this.#questions = new Questions(
      (signal) => this.#ask(signal),
      (error) => around.log.warn(`No next edit: ${error}`),
      () => {
        this.#isTaking = false;
        this.update();
      },
    );
    this.#watching = Disposable.from(
      this.#changes,
      workspace.onDidChangeTextDocument((event) => this.#changed(event)),
      workspace.onDidCloseTextDocument((document) => {
        if (this.#pages.delete(document)) this.update();
      }),
      window.onDidChangeActiveTextEditor(() => this.update()),
      languages.onDidChangeDiagnostics(({ uris }) => this.#diagnosed(uris)),
      window.onDidChangeTextEditorSelection(({ textEditor }) => {
        if (textEditor === window.activeTextEditor) this.#tellKeys();
      }),
      window.onDidChangeTextEditorVisibleRanges(({ textEditor }) => {
        if (textEditor === window.activeTextEditor) this.#tellKeys();
      }),
    );
  }

  dispose(): void {
    this.#questions.stop();
    this.#watching.dispose();
  }

  /** The edit that is shown in the active editor. */
  get shown(): Shown | undefined {
    const document = window.activeTextEditor?.document;
    const proposal = this.#top(document);
    if (document === undefined || proposal === undefined) return undefined;
    const { line } = document.positionAt(proposal.line.start);
    const at = ({ start, end }: LineEdit) => new Range(line, start, line, end);
    const visible = readable(proposal.lineText, proposal);
    return {
      document,
      line,
      lineText: proposal.lineText,
      range: at(proposal),
      text: proposal.text,
      visible: { range: at(visible), text: visible.text },
    };
  }

  /** Go to the edit; at the edit, make it. From Tab, indent where Tab is not for it. */
  go(key?: unknown): Promise<void> {
    // In turn: a second press finds the cursor where the first one brings it.
    this.#turn = this.#turn
      .then(() => this.#go(key))
      .catch((error) => this.around.log.error(error));
    return this.#turn;
  }

  async #go(key: unknown): Promise<void> {
    const editor = window.activeTextEditor;
    const { shown } = this;
    if (editor === undefined || shown === undefined || (key === "tab" && !this.#hasTab(editor))) {
      if (key === "tab") await commands.executeCommand("tab");
    } else if (this.#isAt(editor, shown)) {
      await this.#take(editor, shown);
    } else {
      this.#reached = this.#top(editor.document);
      await goTo(editor, shown);
      this.#tellKeys();
    }
  }

  /** Send what is proposed for the document away; it stays as it is. */
  dismiss(): void {
    const document = window.activeTextEditor?.document;
    if (document === undefined) return;
    this.#stop();
    this.#keep(document, []);
    this.update();
  }

  /** Forget everything: another server, other settings, a pause. */
  forget(): void {
    this.#stop();
    this.#pages.clear();
    this.update();
  }

  /** Show what there is to show now. */
  update(): void {
    const proposal = this.#top(window.activeTextEditor?.document);
    if (proposal !== undefined) this.#server.tellShown(proposal.command);
    this.#tellKeys();
    this.#changes.fire();
  }

  #stop(): void {
    this.#questions.stop();
    this.#isTaking = false;
  }

  #askSoon(document: TextDocument, pauseMs: number): void {
    this.#subject = document;
    this.#questions.soon(pauseMs);
  }

  #top(document: TextDocument | undefined): Proposal | undefined {
    if (document === undefined || this.#isTaking || this.around.isBusy()) return undefined;
    return this.#pages.get(document)?.proposals.at(-1);
  }

  #keep(document: TextDocument, proposals: readonly Proposal[]): void {
    const { cause } = this.#pages.get(document) ?? EMPTY;
    this.#pages.set(document, { cause, proposals });
  }

  #changed({ document, contentChanges, reason }: TextDocumentChangeEvent): void {
    if (contentChanges.length === 0) return;
    if (!this.around.isWanted(document)) {
      if (this.#pages.delete(document)) this.update();
      return;
    }
    const changes = contentChanges.map(({ range, rangeOffset, rangeLength, text }) => ({
      offset: rangeOffset,
      removed: rangeLength,
      text,
      startsLine: range.start.character === 0,
    }));
    const page = this.#pages.get(document) ?? EMPTY;
    // Who takes something back does not want what followed from it.
    const isTakenBack =
      reason === TextDocumentChangeReason.Undo || reason === TextDocumentChangeReason.Redo;
    const proposals = isTakenBack
      ? []
      : page.proposals.flatMap((proposal) => followed(proposal, changes) ?? []);
    this.#pages.set(document, { cause: causeOf(page.cause, changes), proposals });
    if (window.activeTextEditor?.document === document && !this.#isMaking) {
      this.#stop();
      if (!isTakenBack) this.#askSoon(document, PAUSE_MS);
    }
    this.update();
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const editor = window.activeTextEditor;
    if (editor === undefined) return;
    const { document, selection } = editor;
    if (document !== this.#subject || !this.around.isWanted(document)) return;
    const { cause, proposals } = this.#pages.get(document) ?? EMPTY;
    if (cause === undefined) return;
    this.#pages.set(document, { cause: undefined, proposals });
    const words = wholeWords(document, cause);
    const { version } = document;
    const troubles = troublesOf(document);
    const cancel = new CancellationTokenSource();
    signal.addEventListener("abort", () => cancel.cancel());
    try {
      const found = await this.#server.ask(document, selection.active, cancel.token);
      if (signal.aborted) return;
      this.#unanswered = found === undefined ? { document, version, cause, troubles } : undefined;
      if (found !== undefined) this.#add(document, words, found);
      else this.#diagnosed([document.uri]); // what was found meanwhile
    } finally {
      cancel.dispose();
    }
  }

  /** A linter may find what an edit left behind only after the server was asked about it. */
  #diagnosed(uris: readonly Uri[]): void {
    const waiting = this.#unanswered;
    if (waiting === undefined) return;
    const { document, version, cause, troubles } = waiting;
    if (!uris.some((uri) => uri.toString() === document.uri.toString())) return;
    if (troublesOf(document) === troubles) return;
    this.#unanswered = undefined;
    if (document.version !== version) return;
    const page = this.#pages.get(document) ?? EMPTY;
    this.#pages.set(document, { ...page, cause: page.cause ?? cause });
    this.#askSoon(document, PAUSE_MS);
  }

  #add(document: TextDocument, cause: Region, { range, text, command }: Proposed): void {
    const { start, end } = range;
    const { text: lineText, range: whole } = document.lineAt(start.line);
    const proposal: Proposal = {
      start: start.character,
      end: end.character,
      text,
      line: { start: document.offsetAt(whole.start), end: document.offsetAt(whole.end) },
      lineText,
      cause,
      command,
    };
    const { proposals } = this.#pages.get(document) ?? EMPTY;
    this.#keep(document, added(proposals, proposal).slice(-MOST_KEPT));
  }

  async #take(editor: TextEditor, { document, line, lineText, range, text }: Shown): Promise<void> {
    const proposal = this.#top(document);
    if (proposal === undefined) return;
    const all = this.#pages.get(document)?.proposals ?? [];
    this.#keep(
      document,
      all.filter((one) => one !== proposal),
    );
    this.#isTaking = true;
    const isDone =
      document.lineAt(line).text === lineText && (await this.#make(editor, range, text));
    if (!isDone) {
      this.#isTaking = false;
      this.update();
      window.showWarningMessage(l10n.t("The document changed, so nothing was applied."));
      return;
    }
    const end = range.start.translate(0, text.length);
    editor.selection = new Selection(end, end);
    this.#server.tellTaken(proposal.command);
    this.#askSoon(document, 0);
  }

  /** One step to undo; the editor refuses it when its text is another version by then. */
  async #make(editor: TextEditor, range: Range, text: string): Promise<boolean> {
    this.#isMaking = true;
    try {
      return await editor.edit((edit) => edit.replace(range, text));
    } finally {
      this.#isMaking = false;
    }
  }

  /** Conditions of the keys. */
  #tellKeys(): void {
    const editor = window.activeTextEditor;
    this.#setContext("dgLsp.nextEditShown", this.shown !== undefined);
    this.#setContext("dgLsp.nextEditHasTab", editor !== undefined && this.#hasTab(editor));
  }

  /** Whether Tab is for the edit and not for indenting. */
  #hasTab(editor: TextEditor): boolean {
    const { selection, selections, document } = editor;
    const { shown } = this;
    if (shown === undefined || selections.length > 1 || !selection.isEmpty) return false;
    const { line, character } = selection.active;
    const before = document.lineAt(line).text.slice(0, character);
    return this.#isAt(editor, shown) || !indents(before);
  }

  #isAt(editor: TextEditor, { document, line, visible }: Shown): boolean {
    const { selection, selections } = editor;
    if (selections.length > 1 || !selection.isEmpty) return false;
    if (!visible.range.contains(selection.active)) return false;
    return isInSight(editor, line) || this.#top(document) === this.#reached;
  }

  #setContext(key: string, value: boolean): void {
    if ((this.#context.get(key) ?? false) === value) return;
    this.#context.set(key, value);
    commands.executeCommand("setContext", key, value);
  }
}

/** Whether a line is on the screen. */
export function isInSight({ visibleRanges }: TextEditor, line: number): boolean {
  return visibleRanges.some(({ start, end }) => start.line <= line && line <= end.line);
}

function wholeWords(document: TextDocument, { start, end }: Region): Region {
  const [first, last] = [document.positionAt(start), document.positionAt(end)];
  const before = document.lineAt(first.line).text.slice(0, first.character);
  const behind = document.lineAt(last.line).text.slice(last.character);
  return { start: start - headOfWord(before).length, end: end + tailOfWord(behind).length };
}

async function goTo(editor: TextEditor, { document, range, visible }: Shown): Promise<void> {
  const { viewColumn } = editor;
  const there = await window.showTextDocument(document, viewColumn ? { viewColumn } : {});
  there.selection = new Selection(range.start, range.start);
  there.revealRange(visible.range, TextEditorRevealType.InCenterIfOutsideViewport);
}
