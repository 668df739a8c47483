// What is said to the server about next edits: a question, and what became of its proposals.

import {
  type Diagnostic,
  DiagnosticSeverity,
  type LogOutputChannel,
  languages,
  type Position,
  Range,
  type TextDocument,
} from "vscode";
import {
  type CancellationToken,
  type Command,
  ExecuteCommandRequest,
  type LanguageClient,
  type Range as ProtocolRange,
} from "vscode-languageclient/node";

const METHOD = "textDocument/copilotInlineEdit";
const SHOWN_METHOD = "textDocument/didShowInlineEdit";
/** The protocol's word for "not asked for by hand". */
const AUTOMATIC = 2;

/** More than a person would look at, and all at once where a file does not parse. */
const MOST_DIAGNOSTICS = 200;

/** An edit as the server sends it. */
interface ServerEdit {
  readonly text: string;
  readonly range: ProtocolRange;
  readonly textDocument: { readonly uri: string; readonly version: number };
  readonly command?: Command;
}

/** An edit within one line of the version that was asked about. */
export interface Proposed {
  readonly range: Range;
  readonly text: string;
  /** By which the server knows it. */
  readonly command: Command | undefined;
}

/** What any extension finds wrong in a document: names that are no longer known, above all. */
function troubles(document: TextDocument): Diagnostic[] {
  const isTrouble = ({ severity }: Diagnostic) => severity <= DiagnosticSeverity.Warning;
  return languages.getDiagnostics(document.uri).filter(isTrouble).slice(0, MOST_DIAGNOSTICS);
}

/** The same as long as nothing else is found wrong. */
export function troublesOf(document: TextDocument): string {
  const told = ({ range, message, severity }: Diagnostic) => [range, message, severity];
  return JSON.stringify(troubles(document).map(told));
}

export class NextEditServer {
  readonly #shown = new WeakSet<Command>();

  constructor(
    private readonly client: () => LanguageClient | undefined,
    private readonly log: LogOutputChannel,
  ) {}

  /** What is proposed for the document as it is now; undefined when that is nothing, or late. */
  async ask(
    document: TextDocument,
    cursor: Position,
    token: CancellationToken,
  ): Promise<Proposed | undefined> {
    const client = this.client();
    if (client === undefined) return undefined;
    const { version } = document;
    const uri = client.code2ProtocolConverter.asUri(document.uri);
    const parameters = {
      textDocument: { uri, version },
      position: client.code2ProtocolConverter.asPosition(cursor),
      context: {
        triggerKind: AUTOMATIC,
        diagnostics: client.code2ProtocolConverter.asDiagnosticsSync(troubles(document)),
      },
    };
    const answer = await client.sendRequest<{ readonly edits: readonly ServerEdit[] }>(
      METHOD,
      parameters,
      token,
    );
    const [edit] = answer.edits;
    if (edit === undefined || token.isCancellationRequested) return undefined;
    const isLate = document.version !== version || edit.textDocument.version !== version;
    if (isLate || edit.textDocument.uri !== uri) return undefined;
    const { start, end } = edit.range;
    if (start.line !== end.line || /[\r\n]/.test(edit.text)) return undefined;
    const range = new Range(start.line, start.character, end.line, end.character);
    return { range, text: edit.text, command: edit.command };
  }

  /** An edit was drawn; said once. */
  tellShown(command: Command | undefined): void {
    if (command === undefined || this.#shown.has(command)) return;
    this.#shown.add(command);
    this.#tell((client) => client.sendNotification(SHOWN_METHOD, { item: { command } }));
  }

  /** An edit was made. */
  tellTaken(command: Command | undefined): void {
    if (command === undefined) return;
    const { command: name, arguments: given } = command;
    const parameters = { command: name, ...(given ? { arguments: given } : {}) };
    this.#tell((client) => client.sendRequest(ExecuteCommandRequest.type, parameters));
  }

  /** What it does not hear changes nothing here. */
  #tell(say: (client: LanguageClient) => Promise<unknown>): void {
    const client = this.client();
    if (client === undefined) return;
    say(client).catch((error) =>
      this.log.warn(`The server was not told what became of a next edit: ${error}`),
    );
  }
}
