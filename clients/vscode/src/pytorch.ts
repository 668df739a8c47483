// Which build of PyTorch pip is to take, and how it is told so.

import { delimiter, join } from "node:path";
import { version } from "./pytorch.json";

/** For processors alone, or the one that brings CUDA along. */
export type Build = "cpu" | "cuda";

/** What the version of the build for processors ends with, wherever it comes from. */
const CPU = "+cpu";
const NOT_FOUND = /^ERROR: (?:No matching distribution found for|Cannot install) torch==/m;

/** Whether pip has to be told: elsewhere what it takes by itself brings no CUDA. */
export function hasBuilds(platform: string): boolean {
  return platform === "linux";
}

/** Whether an NVIDIA GPU can be used here: its driver is loaded, or its tool is there. */
export function hasNvidia(searchPath: string, exists: (path: string) => boolean): boolean {
  const tools = searchPath.split(delimiter).filter((folder) => folder !== "");
  return ["/proc/driver/nvidia/version", ...tools.map((folder) => join(folder, "nvidia-smi"))].some(
    exists,
  );
}

/** The builds, the one first that fits the machine. */
export function buildsFor(hasGpu: boolean): readonly [Build, Build] {
  return hasGpu ? ["cuda", "cpu"] : ["cpu", "cuda"];
}

/** What pip is asked for beside the server. */
export function requirement(build: Build): string {
  return build === "cpu" ? `torch==${version}${CPU}` : `torch!=${version}${CPU}`;
}

/** Where pip looks as well: an index by its address, or a folder. */
export function places(packageIndex: string, home: string): readonly string[] {
  const place = packageIndex.trim().replace(/^~(?=[\\/]|$)/, home);
  if (place === "") return [];
  return [/^[a-z][a-z+]*:\/\//i.test(place) ? "--extra-index-url" : "--find-links", place];
}

/** Whether pip says that it found no such build; a constraint that is set makes it say so otherwise. */
export function isNotFound(build: Build | undefined, said: string): boolean {
  return build === "cpu" && NOT_FOUND.test(said);
}

/** A command line for the log, without names and passwords in addresses. */
export function forLog(words: readonly string[]): string {
  return words.join(" ").replace(/(:\/\/)[^/@\s]+@/g, "$1***@");
}
