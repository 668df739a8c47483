// What the status bar shows of the server; pure, so that every state can be tested.

import type { Pause } from "./pauses.ts";

/** The parameters of the server's `didChangeStatus`. */
export interface ServerStatus {
  readonly busy: boolean;
  readonly kind: "Normal" | "Warning" | "Error" | "Inactive";
  readonly message: string;
}

/** The server's process as the extension sees it. */
export type Run = "missing" | "installing" | "waiting" | "starting" | "running" | "stopped";

export interface Shown {
  readonly run: Run;
  /** Why the server is missing or stopped, one sentence. */
  readonly trouble: string;
  readonly server: ServerStatus | undefined;
  /** The engine's process ended and is being started again. */
  readonly restarting: boolean;
  readonly model: string;
  readonly pause: Pause | undefined;
  /** Milliseconds from the last question to its answer. */
  readonly latency: number | undefined;
  /** An instructed edit is being made. */
  readonly editing: boolean;
}

export type Severity = "none" | "warning" | "error";

export interface View {
  readonly text: string;
  readonly severity: Severity;
  /** One sentence; the first line of the tooltip. */
  readonly sentence: string;
}

/** Translates a message; `vscode.l10n.t` in the extension. */
export type Translate = (message: string, ...args: string[]) => string;

export function viewOf(shown: Shown, t: Translate): View {
  switch (shown.run) {
    case "missing":
      return view("$(cloud-download)", t("dg-lsp: not installed"), "warning", shown.trouble);
    case "installing":
      return view(
        "$(loading~spin)",
        t("dg-lsp: installing"),
        "none",
        t("The server is installed."),
      );
    case "stopped":
      return view("$(error)", t("dg-lsp: stopped"), "error", shown.trouble);
    case "waiting":
      return view("$(circle-outline)", "dg-lsp", "none", t("Starts with the first file."));
    case "starting":
      return view("$(loading~spin)", t("dg-lsp: starting"), "none", t("The server starts."));
    case "running":
      return viewOfServer(shown, t);
  }
}

function viewOfServer(shown: Shown, t: Translate): View {
  const { server, model, pause, latency } = shown;
  if (server?.kind === "Error") {
    return view("$(error)", t("{0}: failed", model), "error", server.message);
  }
  if (pause !== undefined) {
    return view("$(debug-pause)", t("{0}: paused", model), "none", sentenceOf(pause, t));
  }
  if (server?.kind === "Inactive" && !server.busy) {
    return view("$(circle-slash)", t("{0}: off here", model), "none", server.message);
  }
  if (server === undefined || server.kind === "Inactive") {
    const sentence = server?.message || t("The model loads.");
    return view("$(loading~spin)", t("{0}: loading", model), "none", sentence);
  }
  if (server.kind === "Warning" && shown.restarting) {
    return view("$(sync~spin)", t("{0}: restarting", model), "warning", server.message);
  }
  if (server.kind === "Warning") return view("$(warning)", model, "warning", server.message);
  if (shown.editing) {
    return view("$(loading~spin)", t("{0}: editing", model), "none", t("An edit is being made."));
  }
  const text = latency === undefined ? model : t("{0} · {1} ms", model, latency.toFixed(0));
  return view("$(sparkle)", text, "none", server.message || t("Ready."));
}

function sentenceOf(pause: Pause, t: Translate): string {
  switch (pause) {
    case "all":
      return t("Paused in this window.");
    case "language":
      return t("Paused for this language.");
    case "file":
      return t("Paused for this file.");
  }
}

function view(icon: string, text: string, severity: Severity, sentence: string): View {
  return { text: `${icon} ${text}`, severity, sentence };
}
