// "Choose a model": those that the server finds, or a folder.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import {
  ConfigurationTarget,
  l10n,
  type QuickPickItem,
  QuickPickItemKind,
  window,
  workspace,
} from "vscode";
import { SECTION } from "./settings.ts";
import { modelsOf } from "./text/modelList.ts";

const LIST_MS = 30_000;

interface Choice extends QuickPickItem {
  /** Where the model is; undefined for the choice of a folder. */
  readonly model?: string;
}

/** Ask which model to use, and set it; `current` is marked. */
export async function chooseModel(program: string, current: string): Promise<void> {
  const chosen = await window.showQuickPick(choices(program, current), {
    title: l10n.t("Choose a model"),
    placeHolder: l10n.t("The engine starts anew with it."),
    matchOnDetail: true,
  });
  if (chosen === undefined) return;
  const model = chosen.model ?? (await folder());
  if (model === undefined) return;
  const settings = workspace.getConfiguration(SECTION);
  await settings.update("model", model, ConfigurationTarget.Global);
}

async function choices(program: string, current: string): Promise<Choice[]> {
  const other: Choice = { label: `$(folder) ${l10n.t("A folder…")}` };
  const line: Choice = { label: "", kind: QuickPickItemKind.Separator };
  try {
    const { stdout } = await promisify(execFile)(program, ["model", "list"], { timeout: LIST_MS });
    const models = modelsOf(stdout).map(({ name, size, folder }) => ({
      label: name === current ? `$(check) ${name}` : name,
      description: size,
      detail: folder,
      model: name,
    }));
    return [...models, line, other];
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    const why = stderr?.trim() || String(error);
    window.showWarningMessage(l10n.t("No models could be listed: {0}", why));
    return [other];
  }
}

async function folder(): Promise<string | undefined> {
  const chosen = await window.showOpenDialog({
    title: l10n.t("Choose a model"),
    openLabel: l10n.t("Use this folder"),
    canSelectFiles: false,
    canSelectFolders: true,
  });
  return chosen?.[0]?.fsPath;
}
