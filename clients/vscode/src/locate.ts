// Which program is the server: the one that is set, one on PATH, or our own.

import { delimiter, join } from "node:path";

export interface Places {
  /** The setting; empty when it is not set. */
  readonly configured: string;
  readonly searchPath: string;
  /** The program in the environment that the extension makes. */
  readonly own: string;
  readonly windows: boolean;
  readonly home: string;
}

export type Located =
  | { readonly kind: "found"; readonly path: string; readonly from: "setting" | "path" | "own" }
  | { readonly kind: "wrong setting"; readonly path: string }
  | { readonly kind: "missing" };

/** Look for the server; a setting that names nothing is an error, not a reason to look on. */
export function locate(places: Places, isProgram: (path: string) => boolean): Located {
  const configured = places.configured.trim().replace(/^~(?=[\\/])/, places.home);
  if (configured !== "") {
    return isProgram(configured)
      ? { kind: "found", path: configured, from: "setting" }
      : { kind: "wrong setting", path: configured };
  }
  const name = places.windows ? "dg-lsp.exe" : "dg-lsp";
  for (const folder of places.searchPath.split(delimiter)) {
    if (folder === "") continue;
    const path = join(folder, name);
    if (isProgram(path)) return { kind: "found", path, from: "path" };
  }
  if (isProgram(places.own)) return { kind: "found", path: places.own, from: "own" };
  return { kind: "missing" };
}
