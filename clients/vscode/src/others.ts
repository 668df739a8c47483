// Whether somebody else writes ghost text as well.

/** What the editor says of GitHub Copilot. */
export interface CopilotSigns {
  /** The editor's switch for everything of this kind is off. */
  readonly isSwitchedOff: boolean;
  /** By language; undefined when there is no such setting. */
  readonly enabled: Readonly<Record<string, boolean>> | undefined;
  /** The extension that people install. */
  readonly isInstalledActive: boolean;
  /** The one that newer editors bring along, which runs without an account as well. */
  readonly isBundledActive: boolean;
  readonly accounts: number;
}

export function copilotWrites(signs: CopilotSigns): boolean {
  if (signs.isSwitchedOff) return false;
  if (signs.enabled && Object.values(signs.enabled).every((on) => !on)) return false;
  return signs.isInstalledActive || (signs.isBundledActive && signs.accounts > 0);
}
