// The extension: puts its parts together when the editor has started.

import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import {
  CancellationTokenSource,
  CodeActionTriggerKind,
  commands,
  Disposable,
  type ExtensionContext,
  type LogOutputChannel,
  l10n,
  Uri,
  window,
  workspace,
} from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import { noticeCopilot } from "./copilot.ts";
import { explain } from "./explain.ts";
import { Focus } from "./focus.ts";
import { GhostText } from "./ghostText.ts";
import { EDIT_COMMAND, type EditArguments, InlineEdit } from "./inlineEdit.ts";
import { type How, install, ownProgram } from "./install.ts";
import { type Located, locate } from "./locate.ts";
import { chooseModel } from "./models.ts";
import { NextEdit } from "./nextEdit.ts";
import { NextEditView } from "./nextEditView.ts";
import { Pauses } from "./pauses.ts";
import { Preview } from "./preview.ts";
import { hasOurs, isCell, isOurs, ServerProcess } from "./serverProcess.ts";
import {
  affectedBy,
  clientSettings,
  modelName,
  nextEditSetting,
  SECTION,
  SERVER_SECTION,
  serverSettings,
  setNextEdit,
} from "./settings.ts";
import { StatusItem } from "./statusItem.ts";

const ACCEPTED_COMMAND = "dg.accepted";
const INVITED = "invited";

let running: Extension | undefined;

export function activate(context: ExtensionContext): void {
  running = new Extension(context);
  context.subscriptions.push(running);
  void running.begin();
}

/** Waits for the server to end, so that no process stays behind. */
export async function deactivate(): Promise<void> {
  await running?.end();
  running = undefined;
}

class Extension implements Disposable {
  readonly #log: LogOutputChannel = window.createOutputChannel("dg-lsp", { log: true });
  readonly #pauses = new Pauses();
  readonly #status: StatusItem;
  readonly #ghostText: GhostText;
  readonly #edit: InlineEdit;
  readonly #preview: Preview;
  readonly #next: NextEdit;
  readonly #server: ServerProcess;
  readonly #focus = new Focus(
    () => window.state.focused,
    (focused) => void this.#server.tellFocus(focused),
  );
  readonly #all: Disposable;
  #program: string | undefined;
  /** Next edits are switched on or off: written when it is over, and only then seen. */
  #switching: Promise<void> = Promise.resolve();

  constructor(private readonly context: ExtensionContext) {
    this.#status = new StatusItem({
      run: "waiting",
      trouble: "",
      server: undefined,
      restarting: false,
      model: modelName(),
      pause: undefined,
      latency: undefined,
      editing: false,
    });
    this.#ghostText = new GhostText(
      this.#pauses,
      () => clientSettings().reuseWhileTyping,
      (latency) => {
        this.#status.update({ latency });
        this.#noticeCopilot();
      },
    );
    this.#edit = new InlineEdit(() => this.#server.client);
    this.#preview = new Preview(this.#edit);
    this.#next = new NextEdit({
      client: () => this.#server.client,
      isWanted: (document) =>
        this.#proposesNextEdits() &&
        isOurs(document) &&
        !isCell(document) &&
        this.#pauses.of(document.uri.toString(), document.languageId) === undefined,
      isBusy: () => this.#edit.state.kind !== "idle",
      log: this.#log,
    });
    this.#server = new ServerProcess(this.#log, this.#middleware(), this.#edit.take);
    this.#all = Disposable.from(
      this.#log,
      this.#status,
      this.#ghostText,
      this.#edit,
      this.#preview,
      this.#next,
      new NextEditView(this.#next, (theme) =>
        Uri.joinPath(context.extensionUri, "images", `next-edit-${theme}.svg`),
      ),
      this.#server,
      this.#server.onState((run) => {
        const trouble = l10n.t("The server does not run; see the log, then restart it.");
        this.#status.update({ run, trouble, ...(run === "running" ? {} : { server: undefined }) });
        this.#next.forget();
        if (run === "running") this.#focus.begin();
      }),
      window.onDidChangeWindowState(() => this.#focus.update()),
      this.#server.onStatus(({ status, restarting }) => {
        if (status.kind === "Inactive") this.#ghostText.forget();
        this.#status.update({ server: status, restarting });
      }),
      this.#edit.onChange(({ kind }) => {
        this.#status.update({ editing: kind === "editing" });
        this.#next.update();
      }),
      window.onDidChangeActiveTextEditor(() => this.#showPause()),
      workspace.onDidOpenTextDocument((document) => {
        if (this.#status.shown.run === "waiting" && isOurs(document)) void this.start();
      }),
      workspace.onDidChangeConfiguration(({ affectsConfiguration }) => {
        this.#status.update({ model: modelName() });
        switch (affectedBy((section) => affectsConfiguration(section))) {
          case "process":
            return void this.begin();
          case "server":
            this.#ghostText.forget();
            this.#next.forget();
            return void this.#server.configure();
        }
      }),
      ...this.#commands(),
    );
  }

  dispose(): void {
    this.#all.dispose();
  }

  async end(): Promise<void> {
    await this.#server.stop();
  }

  /** Start the server if a file wants it, else wait for one. */
  async begin(): Promise<void> {
    const located = this.#locate();
    await commands.executeCommand("setContext", "dgLsp.installed", located.kind === "found");
    this.#next.forget();
    if (located.kind !== "found") {
      await this.#server.stop();
      this.#missing(located);
    } else if (hasOurs()) {
      await this.start();
    } else {
      await this.#server.stop();
      this.#status.update({ run: "waiting" });
    }
  }

  /** Start or restart the server. */
  async start(): Promise<void> {
    const located = this.#locate();
    if (located.kind !== "found") {
      this.#missing(located);
      return;
    }
    this.#program = located.path;
    this.#ghostText.forget();
    this.#next.forget();
    this.#status.update({ run: "starting", latency: undefined, server: undefined });
    await this.#server.start(located.path);
  }

  async install(how?: How): Promise<void> {
    const before = this.#status.shown.run;
    this.#status.update({ run: "installing" });
    const again = (other: How) => void this.install(other);
    const isDone = await install(this.context.globalStorageUri, this.#log, again, how);
    if (!isDone) this.#status.update({ run: before });
    else await this.begin();
  }

  #toggleNextEdit(): Promise<void> {
    const toggled = this.#switching.then(() => setNextEdit(!this.#proposesNextEdits()));
    this.#switching = toggled.catch(() => {}); // the editor tells who switched
    return toggled;
  }

  #proposesNextEdits(): boolean {
    return nextEditSetting() ?? this.#server.proposesNextEdits;
  }

  #locate(): Located {
    return locate(
      {
        configured: clientSettings().serverPath,
        searchPath: process.env.PATH ?? "",
        own: ownProgram(this.context.globalStorageUri),
        windows: process.platform === "win32",
        home: homedir(),
      },
      isProgram,
    );
  }

  #missing(located: Located): void {
    this.#program = undefined;
    const trouble =
      located.kind === "wrong setting"
        ? l10n.t("dgLsp.server.path names no program: {0}", located.path)
        : l10n.t("The server is not installed yet.");
    this.#status.update({ run: "missing", trouble, server: undefined });
    if (located.kind === "wrong setting") {
      const open = l10n.t("Open the settings");
      window.showWarningMessage(trouble, open).then((chosen) => {
        if (chosen === open) {
          commands.executeCommand("workbench.action.openSettings", "dgLsp.server.path");
        }
      });
    } else if (!this.context.globalState.get(INVITED)) {
      void this.context.globalState.update(INVITED, true);
      void this.#invite();
    }
  }

  /** Only once: a server that is not wanted is not asked for again. */
  async #invite(): Promise<void> {
    const now = l10n.t("Install");
    const walk = l10n.t("Show me around");
    const chosen = await window.showInformationMessage(
      l10n.t("dg-lsp needs its server, a Python program that runs on this machine."),
      now,
      walk,
    );
    if (chosen === now) await this.install();
    if (chosen === walk) await commands.executeCommand("dgLsp.walkthrough");
  }

  #noticeCopilot(): void {
    void noticeCopilot(this.context.globalState, () => this.#pause(() => this.#pauses.pauseAll()));
  }

  #middleware(): Middleware {
    return {
      provideInlineCompletionItems: this.#ghostText.provide,
      executeCommand: async (command, parameters, next) => {
        if (command === EDIT_COMMAND) {
          return this.#edit.ask(parameters[0] as EditArguments | undefined);
        }
        if (command === ACCEPTED_COMMAND) {
          commands.executeCommand("setContext", "dgLsp.accepted", true);
        }
        const result = await next(command, parameters);
        const reason = refusal(result);
        if (reason !== undefined) window.showInformationMessage(reason);
        return result;
      },
      provideCodeActions: async (document, range, context, token, next) => {
        // Without a selection the bulb would be lit on every line.
        if (range.isEmpty && context.triggerKind === CodeActionTriggerKind.Automatic) return [];
        const actions = await next(document, range, context, token);
        for (const action of actions ?? []) {
          const command =
            typeof action.command === "string" ? action.command : action.command?.command;
          if (command === EDIT_COMMAND) action.title = l10n.t("Edit with instruction…");
        }
        return actions;
      },
      workspace: {
        handleApplyEdit: (params, next) =>
          this.#edit.catchEdit(params) ?? next(params, new CancellationTokenSource().token),
        configuration: async (params, token, next) => {
          const theirs = await next(params, token);
          if (!Array.isArray(theirs)) return theirs;
          return params.items.map(({ section }, index) =>
            section === SERVER_SECTION ? serverSettings() : theirs[index],
          );
        },
      },
    };
  }

  #commands(): Disposable[] {
    const document = () => window.activeTextEditor?.document;
    const table: Record<string, (given?: unknown) => unknown> = {
      edit: () => this.#edit.ask(),
      acceptEdit: () => this.#edit.accept(),
      discardEdit: () => this.#edit.discard(),
      cancelEdit: () => this.#edit.discard(),
      retryEdit: () => this.#edit.retry(),
      compareEdit: () => this.#preview.compare(),
      nextEdit: (key) => this.#next.go(key),
      dismissNextEdit: () => this.#next.dismiss(),
      toggleNextEdit: () => this.#toggleNextEdit(),
      menu: async () => {
        await this.#switching;
        await this.#status.menu(this.#proposesNextEdits());
      },
      pauseFile: () =>
        this.#pause(() => {
          const uri = document()?.uri.toString();
          if (uri !== undefined) this.#pauses.pauseFile(uri);
        }),
      pauseLanguage: () =>
        this.#pause(() => {
          const language = document()?.languageId;
          if (language !== undefined) this.#pauses.pauseLanguage(language);
        }),
      pauseAll: () => this.#pause(() => this.#pauses.pauseAll()),
      resume: () =>
        this.#pause(() => this.#pauses.resume(document()?.uri.toString(), document()?.languageId)),
      explain: () =>
        this.#withProgram((program) => {
          const { model } = serverSettings();
          return explain(program, typeof model === "string" && model ? model : undefined);
        }),
      chooseModel: () => this.#withProgram((program) => chooseModel(program, modelName())),
      openLog: () => this.#log.show(),
      restart: () => this.start(),
      install: () => this.install(),
      walkthrough: () =>
        commands.executeCommand(
          "workbench.action.openWalkthrough",
          `${this.context.extension.id}#start`,
        ),
    };
    return Object.entries(table).map(([name, run]) =>
      commands.registerCommand(`${SECTION}.${name}`, run),
    );
  }

  #withProgram(use: (program: string) => Promise<void>): void {
    if (this.#program !== undefined) void use(this.#program);
    else window.showInformationMessage(l10n.t("The server is not installed yet."));
  }

  #pause(change: () => void): void {
    change();
    this.#showPause();
    if (this.#status.shown.pause !== undefined) {
      this.#next.forget();
      commands.executeCommand("editor.action.inlineSuggest.hide");
    }
  }

  #showPause(): void {
    const active = window.activeTextEditor?.document;
    const pause = this.#pauses.of(active?.uri.toString(), active?.languageId);
    commands.executeCommand("setContext", "dgLsp.paused", pause !== undefined);
    this.#status.update({ pause });
  }
}

/** Why a command of the server changed nothing, as it says itself. */
function refusal(result: unknown): string | undefined {
  if (typeof result !== "object" || result === null) return undefined;
  const { applied, reason } = result as { applied?: unknown; reason?: unknown };
  return applied === false && typeof reason === "string" && reason ? reason : undefined;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
