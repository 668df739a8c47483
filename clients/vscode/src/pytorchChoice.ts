// What is asked about PyTorch: which build, and what to do where pip finds none for processors.

import { existsSync } from "node:fs";
import { type LogOutputChannel, l10n, window } from "vscode";
import { version } from "./pytorch.json";
import { type Build, buildsFor, hasBuilds, hasNvidia } from "./pytorch.ts";
import { clientSettings, setPackageIndex } from "./settings.ts";

/** The build that is wanted; "any" where there is nothing to choose; undefined: not now. */
export async function chooseBuild(): Promise<Build | "any" | undefined> {
  if (!hasBuilds(process.platform)) return "any";
  const hasGpu = hasNvidia(process.env.PATH ?? "", existsSync);
  const here = hasGpu
    ? l10n.t("An NVIDIA GPU is found here.")
    : l10n.t("No NVIDIA GPU is found here.");
  const items = buildsFor(hasGpu).map((build, index) => ({
    ...shownAs(build),
    build,
    ...(index === 0 ? { detail: here } : {}),
  }));
  const title = l10n.t("Which PyTorch, the library that runs the model?");
  return (await window.showQuickPick(items, { title }))?.build;
}

function shownAs(build: Build): { readonly label: string; readonly description: string } {
  return build === "cpu"
    ? {
        label: `$(chip) ${l10n.t("CPU")}`,
        description: l10n.t("small: about 200 MB to fetch"),
      }
    : {
        label: `$(circuit-board) ${l10n.t("With GPU")}`,
        description: l10n.t("brings CUDA: 5.5 GB on disk"),
      };
}

/** Say that pip found no build for processors; what to install instead, undefined: nothing. */
export async function chooseInstead(log: LogOutputChannel): Promise<Build | undefined> {
  const index = l10n.t("Say where…");
  const cuda = l10n.t("Take the one with CUDA");
  const open = l10n.t("Open the log");
  const chosen = await window.showErrorMessage(
    l10n.t(
      "pip finds no build of PyTorch {0} for processors where it looks. Say where one is, or take the one that brings CUDA (5.5 GB on disk).",
      version,
    ),
    index,
    cuda,
    open,
  );
  if (chosen === open) log.show();
  if (chosen === cuda) return "cuda";
  return chosen === index && (await askForIndex()) ? "cpu" : undefined;
}

/** Whether somebody said where pip is to look as well. */
async function askForIndex(): Promise<boolean> {
  const place = await window.showInputBox({
    title: l10n.t("Where is a build of PyTorch for processors?"),
    prompt: l10n.t(
      "The address of a package index (PyTorch's own page on installing names one for CPU), or a folder with the wheel",
    ),
    value: clientSettings().packageIndex,
    ignoreFocusOut: true,
  });
  if (place === undefined || place.trim() === "") return false;
  await setPackageIndex(place.trim());
  return true;
}
