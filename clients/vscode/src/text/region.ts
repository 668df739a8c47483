// A stretch of a document that keeps its text while the rest changes.

/** Offsets in UTF-16 units; `end` is exclusive. */
export interface Region {
  readonly start: number;
  readonly end: number;
}

/** A replacement; the offset is that before it. */
export interface Replacement {
  readonly offset: number;
  readonly removed: number;
  readonly text: string;
  /** Whether what is replaced begins a line, as far as that is known. */
  readonly startsLine?: boolean;
}

/** The region after a replacement outside of it, or undefined when it was touched. */
export function moved(region: Region, change: Replacement): Region | undefined {
  const changeEnd = change.offset + change.removed;
  // The region begins a line; what ends in front of it must leave it at the beginning of one.
  const leavesLine =
    change.text === "" ? (change.startsLine ?? false) : /[\r\n]$/.test(change.text);
  const above = changeEnd < region.start || (changeEnd === region.start && leavesLine);
  if (above) {
    const by = change.text.length - change.removed;
    return { start: region.start + by, end: region.end + by };
  }
  const below =
    change.offset > region.end || (change.offset === region.end && /^[\r\n]/.test(change.text));
  return below ? region : undefined;
}

/** The region after replacements that were all made at once, as editors report them. */
export function movedByAll(region: Region, changes: readonly Replacement[]): Region | undefined {
  // From the end of the document on, so that no offset is moved by a change before it.
  const ordered = [...changes].sort((a, b) => b.offset - a.offset);
  let current: Region | undefined = region;
  for (const change of ordered) {
    if (current === undefined) return undefined;
    current = moved(current, change);
  }
  return current;
}
