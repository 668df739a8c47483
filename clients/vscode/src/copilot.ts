// Beside GitHub Copilot: say once that there are two who write ghost text.

import {
  authentication,
  commands,
  extensions,
  l10n,
  type Memento,
  window,
  workspace,
} from "vscode";
import { copilotWrites } from "./others.ts";

const TOLD = "toldOfCopilot";

/** Tell the user when Copilot is active; both offers share VS Code's one list, so Tab takes one. */
export async function noticeCopilot(memory: Memento, pauseAll: () => void): Promise<void> {
  if (memory.get(TOLD) || !(await completes())) return;
  await memory.update(TOLD, true);
  const both = l10n.t("Use both");
  const pause = l10n.t("Pause dg-lsp");
  const settings = l10n.t("Copilot settings");
  const chosen = await window.showInformationMessage(
    l10n.t(
      "GitHub Copilot is active as well. Tab takes the suggestion that is shown; the keys for the next one go through those of both.",
    ),
    both,
    pause,
    settings,
  );
  if (chosen === pause) pauseAll();
  if (chosen === settings) {
    await commands.executeCommand("workbench.action.openSettings", "github.copilot.enable");
  }
}

async function completes(): Promise<boolean> {
  const isActive = (id: string) => extensions.getExtension(id)?.isActive ?? false;
  // Not in the oldest editors that we support, which do not bring Copilot along either.
  const { getAccounts } = authentication as { getAccounts?: (id: string) => Thenable<unknown[]> };
  return copilotWrites({
    isSwitchedOff: workspace.getConfiguration("chat").get("disableAIFeatures") === true,
    enabled: workspace.getConfiguration("github.copilot").get<Record<string, boolean>>("enable"),
    isInstalledActive: isActive("GitHub.copilot"),
    isBundledActive: isActive("GitHub.copilot-chat"),
    accounts: (await getAccounts?.("github"))?.length ?? 0,
  });
}
