// An environment of our own for the server, made only when the user asks for it.

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import {
  type CancellationToken,
  type LogOutputChannel,
  l10n,
  type Progress,
  ProgressLocation,
  type Uri,
  window,
} from "vscode";
import { type Build, forLog, isNotFound, places, requirement } from "./pytorch.ts";
import { chooseBuild, chooseInstead } from "./pytorchChoice.ts";
import { clientSettings } from "./settings.ts";

const WINDOWS = process.platform === "win32";
const OLDEST_PYTHON = [3, 11] as const;
const PYTHONS = WINDOWS
  ? ["py", "python"]
  : ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python"];

/** Ended by the user. */
class Stopped extends Error {}

/** pip finds no such build of PyTorch. */
class NotFound extends Error {}

/** The program of the environment in `storage`, whether it is there or not. */
export function ownProgram(storage: Uri): string {
  return inEnvironment(storage, "dg-lsp");
}

/** What to install. */
export interface How {
  /** What pip takes: a wheel, a folder. */
  readonly source: string;
  /** Undefined: whichever pip takes. */
  readonly build: Build | undefined;
}

/**
 * Make the environment and install the server into it, with progress.
 *
 * @param again told what to install instead, when somebody says so after a failure
 * @param how asked for when it is not given
 * @returns whether the server is there now
 */
export async function install(
  storage: Uri,
  log: LogOutputChannel,
  again: (how: How) => void,
  how?: How,
): Promise<boolean> {
  const wanted = how ?? (await choose());
  if (wanted === undefined) return false;
  const options = {
    location: ProgressLocation.Notification,
    title: l10n.t("Installing dg-lsp"),
    cancellable: true,
  };
  try {
    await window.withProgress(options, (progress, token) =>
      make({ ...wanted, storage, log, progress, token }),
    );
    return true;
  } catch (error) {
    if (error instanceof Stopped) return false;
    log.error(String(error));
    // Nobody waits for an answer: a notice may stand there for long.
    if (error instanceof NotFound) {
      void chooseInstead(log).then((build) => build && again({ ...wanted, build }));
      return false;
    }
    const open = l10n.t("Open the log");
    const message = error instanceof Error ? error.message : String(error);
    window
      .showErrorMessage(l10n.t("dg-lsp could not be installed: {0}", message), open)
      .then((chosen) => chosen === open && log.show());
    return false;
  }
}

async function choose(): Promise<How | undefined> {
  const source = clientSettings().serverPackage.trim() || (await chooseSource());
  if (source === undefined) return undefined;
  const build = await chooseBuild();
  return build && { source, build: build === "any" ? undefined : build };
}

interface Job extends How {
  readonly storage: Uri;
  readonly log: LogOutputChannel;
  readonly progress: Progress<{ message: string }>;
  readonly token: CancellationToken;
}

async function make(job: Job): Promise<void> {
  const { storage, source, build, progress } = job;
  const folder = environment(storage);
  const isFresh = !existsSync(folder);
  await mkdir(storage.fsPath, { recursive: true });
  try {
    progress.report({ message: l10n.t("looking for Python") });
    const python = await findPython(job);
    progress.report({ message: l10n.t("making an environment") });
    await run(job, python, ["-m", "venv", folder]);
    progress.report({ message: l10n.t("installing {0}", source) });
    await run(job, inEnvironment(storage, "python"), [
      ...["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--upgrade"],
      ...places(clientSettings().packageIndex, homedir()),
      ...(build === undefined ? [] : [requirement(build)]),
      source,
    ]);
    progress.report({ message: l10n.t("checking") });
    await run(job, ownProgram(storage), ["--version"]);
  } catch (error) {
    if (isFresh) await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function chooseSource(): Promise<string | undefined> {
  const wheel = { label: `$(package) ${l10n.t("A wheel…")}`, folder: false };
  const checkout = { label: `$(folder) ${l10n.t("A checkout…")}`, folder: true };
  const chosen = await window.showQuickPick([wheel, checkout], {
    title: l10n.t("Install dg-lsp from"),
  });
  if (chosen === undefined) return undefined;
  const [uri] =
    (await window.showOpenDialog({
      canSelectFiles: !chosen.folder,
      canSelectFolders: chosen.folder,
      openLabel: l10n.t("Install"),
      ...(chosen.folder ? {} : { filters: { [l10n.t("Wheels")]: ["whl"] } }),
    })) ?? [];
  return uri?.fsPath;
}

async function findPython(job: Job): Promise<string> {
  const configured = clientSettings().python.trim();
  for (const candidate of configured ? [configured] : PYTHONS) {
    try {
      const out = await run(job, candidate, ["-c", "import sys; print(*sys.version_info[:2])"]);
      const [major = 0, minor = 0] = out.trim().split(" ").map(Number);
      if (major === OLDEST_PYTHON[0] && minor >= OLDEST_PYTHON[1]) return candidate;
    } catch (error) {
      if (error instanceof Stopped) throw error;
    }
  }
  const oldest = OLDEST_PYTHON.join(".");
  throw new Error(
    configured
      ? l10n.t("{0} is not Python {1} or newer.", configured, oldest)
      : l10n.t(
          "There is no Python {0} or newer here; install one or set dgLsp.server.python.",
          oldest,
        ),
  );
}

/** Run a program to its end; its output. Raises with its last line when it fails. */
function run(job: Job, program: string, parameters: readonly string[]): Promise<string> {
  const { log, token, progress } = job;
  log.info(forLog([program, ...parameters]));
  return new Promise((resolve, reject) => {
    const child: ChildProcess = spawn(program, parameters, { stdio: ["ignore", "pipe", "pipe"] });
    const stopping = token.onCancellationRequested(() => child.kill());
    let out = "";
    const said: string[] = [];
    const hear = (chunk: Buffer) => {
      for (const line of chunk.toString().split(/\r?\n/).filter(Boolean)) {
        log.info(line);
        said.push(line);
        const collecting = /^(Collecting|Downloading|Installing) .*/.exec(line.trim());
        if (collecting) progress.report({ message: shortened(collecting[0]) });
      }
    };
    child.stdout?.on("data", (chunk: Buffer) => {
      out += chunk.toString();
      hear(chunk);
    });
    child.stderr?.on("data", hear);
    child.on("error", reject);
    child.on("close", (code) => {
      stopping.dispose();
      if (token.isCancellationRequested) reject(new Stopped());
      else if (code === 0) resolve(out);
      else if (isNotFound(job.build, said.join("\n"))) reject(new NotFound(said.at(-1)));
      else reject(new Error(said.at(-1) ?? `${program}: ${code}`));
    });
  });
}

function shortened(line: string): string {
  return line.length > 60 ? `${line.slice(0, 59)}…` : line;
}

function environment(storage: Uri): string {
  return join(storage.fsPath, "venv");
}

function inEnvironment(storage: Uri, program: string): string {
  return WINDOWS
    ? join(environment(storage), "Scripts", `${program}.exe`)
    : join(environment(storage), "bin", program);
}
