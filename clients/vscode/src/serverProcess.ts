// The server's process through the client library: started, restarted, told of settings.

import { type Disposable, EventEmitter, type LogOutputChannel, workspace } from "vscode";
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  State,
} from "vscode-languageclient/node";
import { Crashes } from "./crashes.ts";
import { FOCUS_METHOD } from "./focus.ts";
import { PREVIEW_METHOD, type ServerPreview } from "./inlineEdit.ts";
import { levelOf } from "./logLevel.ts";
import { clientSettings, SERVER_SECTION, serverSettings } from "./settings.ts";
import type { ServerStatus } from "./statusView.ts";

const STATUS_METHOD = "didChangeStatus";
/** What `dg.status` says of an engine that ended and is started again. */
const RESTARTING = "restarting";
const STOP_MS = 3000;
const CELL_SCHEME = "vscode-notebook-cell";

export type ProcessState = "starting" | "running" | "stopped";

export class ServerProcess implements Disposable {
  readonly #crashes = new Crashes();
  readonly #states = new EventEmitter<ProcessState>();
  readonly #statuses = new EventEmitter<{ status: ServerStatus; restarting: boolean }>();
  readonly onState = this.#states.event;
  readonly onStatus = this.#statuses.event;
  #client: LanguageClient | undefined;
  /** Starts and stops one after another. */
  #turn: Promise<void> = Promise.resolve();

  constructor(
    private readonly log: LogOutputChannel,
    private readonly middleware: Middleware,
    private readonly onPreview: (preview: ServerPreview) => void,
  ) {}

  get client(): LanguageClient | undefined {
    return this.#client?.isRunning() ? this.#client : undefined;
  }

  /** Whether the server says that it proposes next edits, by whatever settings it found. */
  get proposesNextEdits(): boolean {
    const experimental: unknown = this.client?.initializeResult?.capabilities.experimental;
    return (
      (experimental as { copilotInlineEdit?: unknown } | undefined)?.copilotInlineEdit === true
    );
  }

  /** Start `program`, in place of the one that runs. */
  start(program: string): Promise<void> {
    return this.#next(() => {
      this.#crashes.forget();
      return this.#run(program);
    });
  }

  stop(): Promise<void> {
    return this.#next(() => this.#end());
  }

  /** Pass on the settings as they are now. */
  async configure(): Promise<void> {
    await this.client?.sendNotification("workspace/didChangeConfiguration", {
      settings: { [SERVER_SECTION]: serverSettings() },
    });
  }

  /** Say whether the user looks at this window. */
  async tellFocus(focused: boolean): Promise<void> {
    try {
      await this.client?.sendNotification(FOCUS_METHOD, { focused });
    } catch (error) {
      this.log.debug(`The server was not told of the focus: ${error}`); // it ends just now
    }
  }

  dispose(): void {
    this.#states.dispose();
    this.#statuses.dispose();
    void this.stop();
  }

  #next(work: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(work, work);
    return this.#turn;
  }

  async #run(program: string): Promise<void> {
    await this.#end();
    const client = this.#make(program);
    this.#client = client;
    this.log.info(`Starting ${program} --stdio`);
    try {
      await client.start();
    } catch (error) {
      this.log.error(`The server did not start: ${error}`);
      if (this.#client === client) this.#states.fire("stopped");
    }
  }

  /** One that ended by itself is followed by another, in its turn. */
  #replace(program: string): void {
    this.#client = undefined;
    this.#states.fire("starting");
    void this.#next(async () => {
      if (this.#client === undefined) await this.#run(program);
    });
  }

  async #end(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    try {
      await client?.dispose(STOP_MS);
    } catch (error) {
      this.log.debug(`The server did not stop in an orderly way: ${error}`);
    }
  }

  #make(program: string): LanguageClient {
    /** One that was replaced is over, however it ends. */
    const isCurrent = () => this.#client === client;
    let isFollowed = false;
    const options: LanguageClientOptions = {
      documentSelector: documentSelector(clientSettings().languages),
      outputChannel: this.log,
      traceOutputChannel: this.log,
      initializationOptions: serverSettings,
      middleware: this.middleware,
      stdioOptions: {
        stdout: (stream) => stream.resume(), // the protocol has its own reader
        stderr: (stream) => logLines(stream, this.log),
      },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          isFollowed = isCurrent() && this.#crashes.another();
          // The library's own restart can go on beside a start that somebody asks for, and two of
          // its clients cannot have the same commands.
          return { action: CloseAction.DoNotRestart, handled: true }; // the status bar says it
        },
      },
    };
    const client: LanguageClient = new QuietClient(
      "dg-lsp",
      "dg-lsp",
      { command: program, args: ["--stdio"] },
      options,
    );
    client.onDidChangeState(({ newState }) => {
      if (!isCurrent()) return;
      const state = stateOf(newState);
      if (state === "stopped" && isFollowed) this.#replace(program);
      else this.#states.fire(state);
    });
    client.onNotification(STATUS_METHOD, (status: ServerStatus) => this.#tell(client, status));
    client.onNotification(PREVIEW_METHOD, this.onPreview);
    return client;
  }

  async #tell(client: LanguageClient, status: ServerStatus): Promise<void> {
    this.#statuses.fire({ status, restarting: false });
    if (status.kind !== "Warning" || !status.busy) return;
    // The notification does not say whether the engine is gone or an answer just came too late.
    const report = await client.sendRequest<{ model: string }>("workspace/executeCommand", {
      command: "dg.status",
      arguments: [],
    });
    if (report.model === RESTARTING) this.#statuses.fire({ status, restarting: true });
  }
}

/** Says in the log what the status bar item shows already, and in no notification. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

function stateOf(state: State): ProcessState {
  if (state === State.Running) return "running";
  return state === State.Starting ? "starting" : "stopped";
}

function documentSelector(languages: readonly string[]) {
  const schemes = ["file", "untitled", CELL_SCHEME];
  const wanted = languages.includes("*") ? ["*"] : languages;
  return wanted.flatMap((language) => schemes.map((scheme) => ({ scheme, language })));
}

/** Whether a document is a cell of a notebook. */
export function isCell(document: { uri: { scheme: string } }): boolean {
  return document.uri.scheme === CELL_SCHEME;
}

/** Whether the server is told of a document. */
export function isOurs(document: { uri: { scheme: string }; languageId: string }): boolean {
  const { languages } = clientSettings();
  return (
    documentSelector(languages).some(({ scheme }) => scheme === document.uri.scheme) &&
    (languages.includes("*") || languages.includes(document.languageId))
  );
}

/** Whether a document that the server is told of is open. */
export function hasOurs(): boolean {
  return workspace.textDocuments.some(isOurs);
}

function logLines(stream: NodeJS.ReadableStream, log: LogOutputChannel): void {
  let rest = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    const lines = (rest + chunk).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) log[levelOf(line)](line);
  });
}
