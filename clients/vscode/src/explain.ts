// "Explain this place": the prompt and the canvas of the cursor, in a terminal.

import {
  l10n,
  ProcessExecution,
  Task,
  TaskPanelKind,
  TaskRevealKind,
  TaskScope,
  tasks,
  window,
} from "vscode";
import { placeArgument } from "./text/place.ts";

/** Run `dg-lsp explain` for the cursor; a task, for its arguments need no quoting. */
export async function explain(program: string, model: string | undefined): Promise<void> {
  const editor = window.activeTextEditor;
  if (editor === undefined || editor.document.uri.scheme !== "file") {
    window.showInformationMessage(l10n.t("Put the cursor into a file first."));
    return;
  }
  const { document, selection } = editor;
  if (document.isDirty) {
    window.showInformationMessage(l10n.t("The file is not saved; what is on disk is explained."));
  }
  const { line, character } = selection.active;
  const place = placeArgument(document.uri.fsPath, line, document.lineAt(line).text, character);
  const given = model === undefined ? [] : ["--model", model];
  const task = new Task(
    { type: "dg-lsp" },
    TaskScope.Workspace,
    l10n.t("explain"),
    "dg-lsp",
    new ProcessExecution(program, ["explain", place, ...given]),
  );
  task.presentationOptions = {
    reveal: TaskRevealKind.Always,
    panel: TaskPanelKind.Dedicated,
    clear: true,
    showReuseMessage: false,
  };
  await tasks.executeTask(task);
}
