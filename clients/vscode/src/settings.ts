// The settings: ours, and the server's, which are passed on under the name that it knows.

import { ConfigurationTarget, workspace } from "vscode";
import properties from "./serverSettings.json";

/** The section of our settings in the editor. */
export const SECTION = "dgLsp";
/** The section that the server asks for. */
export const SERVER_SECTION = "dg";

const SERVER_KEYS: readonly string[] = properties;
const NEXT_EDIT = "nextEdit";
/** A change of these needs another process. */
const PROCESS_KEYS = ["server.path", "languages"];

export interface ClientSettings {
  readonly serverPath: string;
  readonly serverPackage: string;
  readonly python: string;
  readonly packageIndex: string;
  readonly languages: readonly string[];
  readonly reuseWhileTyping: boolean;
}

export function clientSettings(): ClientSettings {
  const settings = workspace.getConfiguration(SECTION);
  return {
    serverPath: settings.get("server.path", ""),
    serverPackage: settings.get("server.package", ""),
    python: settings.get("server.python", ""),
    packageIndex: settings.get("server.packageIndex", ""),
    languages: settings.get("languages", ["python"]),
    reuseWhileTyping: settings.get("reuseWhileTyping", true),
  };
}

/** Keep where pip looks as well, as a setting of this machine. */
export async function setPackageIndex(place: string): Promise<void> {
  const settings = workspace.getConfiguration(SECTION);
  await settings.update("server.packageIndex", place, ConfigurationTarget.Global);
}

/** What the server is configured with: what somebody set; a default would hide what files say. */
export function serverSettings(): Record<string, unknown> {
  const settings = workspace.getConfiguration(SECTION);
  const isSet = (key: string) => {
    const found = settings.inspect(key);
    const values = [found?.globalValue, found?.workspaceValue, found?.workspaceFolderValue];
    return values.some((value) => value !== undefined);
  };
  return Object.fromEntries(
    SERVER_KEYS.filter(isSet).map((key) => [key, settings.get(key) ?? null]),
  );
}

/** Whether somebody wants next edits; undefined when nobody says so in the editor. */
export function nextEditSetting(): boolean | undefined {
  const found = workspace.getConfiguration(SECTION).inspect<boolean>(NEXT_EDIT);
  return found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
}

/** Switch next edits on or off where that was said last. */
export async function setNextEdit(isOn: boolean): Promise<void> {
  const settings = workspace.getConfiguration(SECTION);
  const isOfWorkspace = settings.inspect(NEXT_EDIT)?.workspaceValue !== undefined;
  const target = isOfWorkspace ? ConfigurationTarget.Workspace : ConfigurationTarget.Global;
  await settings.update(NEXT_EDIT, isOn, target);
}

/** The model's name as people know it. */
export function modelName(): string {
  const configured = workspace.getConfiguration(SECTION).get<string | null>("model");
  const name = configured || process.env.DG_LSP_MODEL || "dg-tiny";
  return name.split(/[\\/]/).findLast((part) => part !== "") ?? name;
}

export type Affects = "process" | "server" | "nothing";

/** What must be told of a change. */
export function affectedBy(affects: (section: string) => boolean): Affects {
  if (PROCESS_KEYS.some((key) => affects(`${SECTION}.${key}`))) return "process";
  if (SERVER_KEYS.some((key) => affects(`${SECTION}.${key}`))) return "server";
  return "nothing";
}
