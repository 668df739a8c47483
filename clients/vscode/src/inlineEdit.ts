// Instructed edits: ask, wait, show what would change, then accept, discard or try again.

import {
  CancellationTokenSource,
  commands,
  Disposable,
  EventEmitter,
  l10n,
  type Position,
  Range,
  type TextDocument,
  type TextEditor,
  Uri,
  WorkspaceEdit,
  window,
  workspace,
} from "vscode";
import {
  type ApplyWorkspaceEditParams,
  type ApplyWorkspaceEditResult,
  ExecuteCommandRequest,
  type LanguageClient,
  type Range as ProtocolRange,
  TextDocumentEdit,
  TextEdit,
} from "vscode-languageclient/node";
import { movedByAll, type Region } from "./text/region.ts";

export const EDIT_COMMAND = "dg.edit";

/** A change that is shown and not made. */
export interface Proposal {
  readonly document: TextDocument;
  /** The version of the document that the range is for. */
  readonly version: number;
  readonly range: Range;
  /** The range in offsets, which survive that the document has changed already. */
  readonly region: Region;
  readonly oldText: string;
  readonly newText: string;
  readonly instruction: string;
  readonly milliseconds: number;
}

/** What is being edited before there is a proposal. */
export interface Request {
  readonly document: TextDocument;
  readonly range: Range;
  readonly instruction: string;
}

/** What the proposal may become, while the model is at work. */
export interface Draft {
  readonly range: Range;
  readonly oldText: string;
  readonly newText: string;
  readonly step: number;
}

export type EditState =
  | { readonly kind: "idle" }
  | { readonly kind: "editing"; readonly request: Request; readonly draft?: Draft }
  | { readonly kind: "previewing"; readonly proposal: Proposal };

/** The argument of the server's command, as its code action carries it. */
export interface EditArguments {
  readonly uri: string;
  readonly range: ProtocolRange;
  readonly instruction?: string;
  readonly version?: number | null;
  /** Drafts are told of, and nothing is applied; a server that knows no drafts overlooks this. */
  readonly preview?: boolean;
}

interface EditResult {
  readonly applied: boolean;
  readonly reason: string;
  /** The server's name of an edit that waits to be accepted. */
  readonly id?: string;
}

/** The parameters of `dg/editPreview`: an edit as it stands. */
export interface ServerPreview {
  readonly id: string;
  readonly uri: string;
  readonly version: number;
  readonly range: ProtocolRange;
  readonly text: string;
  readonly step: number;
  /** Null while it is worked on. */
  readonly done: string | null;
  /** Why it is over without anything to accept. */
  readonly reason?: string;
}

/** An edit that the server asked for while its command ran. */
interface Caught {
  readonly range: ProtocolRange;
  readonly text: string;
}

interface Catching {
  readonly uri: string;
  readonly request: Request;
  readonly version: number;
  caught?: Caught;
  /** What the server ended up with, by its name of the edit. */
  readonly finished: Map<string, Caught>;
}

export const PREVIEW_METHOD = "dg/editPreview";
const DISCARD_COMMAND = "dg.discardEdit";
const SHOWN_NOT_APPLIED = "it is shown first";

export class InlineEdit implements Disposable {
  readonly #changes = new EventEmitter<EditState>();
  readonly #watching: Disposable;
  readonly onChange = this.#changes.event;
  #state: EditState = { kind: "idle" };
  #cancel: CancellationTokenSource | undefined;
  #catching: Catching | undefined;
  /** The server's name of the edit that is shown. */
  #id: string | undefined;

  constructor(private readonly client: () => LanguageClient | undefined) {
    this.#watching = Disposable.from(
      workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (this.#state.kind !== "previewing" || contentChanges.length === 0) return;
        const { proposal } = this.#state;
        if (document !== proposal.document) return;
        const changes = contentChanges.map(({ range, rangeOffset, rangeLength, text }) => ({
          offset: rangeOffset,
          removed: rangeLength,
          text,
          startsLine: range.start.character === 0,
        }));
        this.#follow(proposal, movedByAll(proposal.region, changes));
      }),
      workspace.onDidCloseTextDocument((document) => {
        if (documentOf(this.#state) === document) this.discard();
      }),
    );
  }

  get state(): EditState {
    return this.#state;
  }

  dispose(): void {
    this.#cancel?.cancel();
    this.#watching.dispose();
    this.#changes.dispose();
  }

  /** Ask for an instruction for the selection, or for what a code action is about. */
  async ask(argument?: EditArguments): Promise<void> {
    const place = argument ? await placeOf(argument) : placeIn(window.activeTextEditor);
    if (place === undefined) {
      window.showInformationMessage(l10n.t("Open a file and select what to edit."));
      return;
    }
    await this.#askFor(place, "");
  }

  /** Ask again with another instruction. */
  async retry(): Promise<void> {
    if (this.#state.kind !== "previewing") return;
    const { document, range, instruction } = this.#state.proposal;
    await this.#askFor({ document, range }, instruction);
  }

  /** Make the change that is shown; it is one step to undo. */
  async accept(): Promise<void> {
    if (this.#state.kind !== "previewing") return;
    const { proposal } = this.#state;
    this.#set({ kind: "idle" });
    const { document, version, range, oldText, newText } = proposal;
    const isSame = document.version === version && document.getText(range) === oldText;
    const edit = new WorkspaceEdit();
    edit.replace(document.uri, range, newText);
    if (!isSame || document.isClosed || !(await workspace.applyEdit(edit))) {
      window.showWarningMessage(l10n.t("The document changed, so nothing was applied."));
    }
  }

  /** Forget the change that is shown, or stop the one that is being made. */
  discard(): void {
    this.#cancel?.cancel();
    if (this.#id !== undefined) void this.#tellDiscarded(this.#id);
    this.#set({ kind: "idle" });
  }

  /** The server tells of an edit as it stands. */
  readonly take = (preview: ServerPreview): void => {
    const catching = this.#catching;
    if (catching === undefined || catching.uri !== preview.uri) return;
    const { request, version } = catching;
    if (preview.reason || preview.version !== version) return;
    if (preview.done !== null) {
      catching.finished.set(preview.id, { range: preview.range, text: preview.text });
    } else if (preview.step > 0 && request.document.version === version) {
      const { start, end } = preview.range;
      const range = new Range(start.line, start.character, end.line, end.character);
      const oldText = request.document.getText(range);
      const draft = { range, oldText, newText: preview.text, step: preview.step };
      this.#set({ kind: "editing", request, draft });
    }
  };

  /** The edits of our command are kept for showing; false means that others go their way. */
  readonly catchEdit = (params: ApplyWorkspaceEditParams): ApplyWorkspaceEditResult | undefined => {
    const catching = this.#catching;
    const [change, ...further] = params.edit.documentChanges ?? [];
    if (catching === undefined || change === undefined || further.length > 0) return undefined;
    if (!TextDocumentEdit.is(change) || change.textDocument.uri !== catching.uri) return undefined;
    const [edit] = change.edits;
    if (change.edits.length !== 1 || !TextEdit.is(edit)) return undefined;
    catching.caught = { range: edit.range, text: edit.newText };
    return { applied: false, failureReason: SHOWN_NOT_APPLIED };
  };

  async #askFor(place: { document: TextDocument; range: Range }, before: string): Promise<void> {
    const first = place.range.start.line + 1;
    const last = place.range.end.line + 1;
    const instruction = await window.showInputBox({
      title:
        first === last
          ? l10n.t("Edit line {0}", first)
          : l10n.t("Edit lines {0} to {1}", first, last),
      prompt: l10n.t("What should change? You see the result before anything is written."),
      placeHolder: l10n.t("use a list comprehension"),
      value: before,
    });
    if (!instruction?.trim()) return;
    this.discard();
    await this.#request({ ...place, instruction: instruction.trim() });
  }

  async #request(request: Request): Promise<void> {
    const client = this.client();
    if (client === undefined) {
      window.showWarningMessage(l10n.t("The server does not run; see the status bar."));
      return;
    }
    const { document, range, instruction } = request;
    const cancel = new CancellationTokenSource();
    const uri = client.code2ProtocolConverter.asUri(document.uri);
    const { version } = document;
    const catching: Catching = { uri, request, version, finished: new Map() };
    this.#cancel = cancel;
    this.#catching = catching;
    this.#set({ kind: "editing", request });
    const began = performance.now();
    let result: EditResult = { applied: false, reason: "" };
    try {
      const argument: EditArguments = {
        uri,
        range: client.code2ProtocolConverter.asRange(range),
        instruction,
        version,
        preview: true,
      };
      result = (await client.sendRequest(
        ExecuteCommandRequest.type,
        { command: EDIT_COMMAND, arguments: [argument] },
        cancel.token,
      )) as EditResult;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      result = { applied: false, reason };
    } finally {
      if (this.#catching === catching) this.#catching = undefined;
      if (this.#cancel === cancel) this.#cancel = undefined;
    }
    if (cancel.token.isCancellationRequested) return; // discard() has set the state
    const caught = catching.finished.get(result.id ?? "") ?? catching.caught;
    if (caught === undefined) {
      this.#set({ kind: "idle" });
      await this.#explain(result.reason, request);
      return;
    }
    const target = client.protocol2CodeConverter.asRange(caught.range);
    const proposal: Proposal = {
      document,
      version,
      range: target,
      region: { start: document.offsetAt(target.start), end: document.offsetAt(target.end) },
      oldText: document.getText(target),
      newText: caught.text,
      instruction,
      milliseconds: performance.now() - began,
    };
    if (document.version !== version) {
      this.#set({ kind: "idle" });
      await this.#explain(l10n.t("The document changed meanwhile."), request);
      return;
    }
    this.#set({ kind: "previewing", proposal });
    this.#id = result.id;
  }

  async #tellDiscarded(id: string): Promise<void> {
    const parameters = { command: DISCARD_COMMAND, arguments: [{ id }] };
    try {
      await this.client()?.sendRequest(ExecuteCommandRequest.type, parameters);
    } catch {
      // It is gone there as well, which is what was wanted.
    }
  }

  async #explain(reason: string, request: Request): Promise<void> {
    const again = l10n.t("Try again…");
    const chosen = await window.showInformationMessage(
      reason || l10n.t("The server proposed nothing."),
      again,
    );
    if (chosen === again) await this.#askFor(request, request.instruction);
  }

  #follow(proposal: Proposal, region: Region | undefined): void {
    if (region === undefined) {
      this.#set({ kind: "idle" });
      window.setStatusBarMessage(
        l10n.t("dg-lsp: the lines changed, so the proposal is gone"),
        5000,
      );
      return;
    }
    const { document } = proposal;
    const range = new Range(document.positionAt(region.start), document.positionAt(region.end));
    const next = { ...proposal, version: document.version, range, region };
    this.#set({ kind: "previewing", proposal: next });
  }

  #set(state: EditState): void {
    this.#state = state;
    if (state.kind !== "previewing") this.#id = undefined;
    commands.executeCommand("setContext", "dgLsp.editing", state.kind === "editing");
    commands.executeCommand("setContext", "dgLsp.previewing", state.kind === "previewing");
    this.#changes.fire(state);
  }
}

/** The document that a state is about. */
export function documentOf(state: EditState): TextDocument | undefined {
  switch (state.kind) {
    case "idle":
      return undefined;
    case "editing":
      return state.request.document;
    case "previewing":
      return state.proposal.document;
  }
}

function placeIn(editor: TextEditor | undefined) {
  return (
    editor && { document: editor.document, range: wholeLines(editor.document, editor.selection) }
  );
}

async function placeOf(argument: EditArguments) {
  const document = await workspace.openTextDocument(Uri.parse(argument.uri));
  const { start, end } = argument.range;
  const range = new Range(start.line, start.character, end.line, end.character);
  return { document, range: wholeLines(document, range) };
}

/** What the server edits: every line that the range touches, but not one that it only reaches. */
function wholeLines(document: TextDocument, range: { start: Position; end: Position }): Range {
  const { start, end } = range;
  const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
  return new Range(start.line, 0, last, document.lineAt(last).text.length);
}
