// The layout of a proposal beside the lines that it would replace.

import { type DiffLine, lineDiff } from "./lineDiff.ts";

/** A line of the document while a proposal is shown. */
export interface Row {
  /** Counted from the first line of the region. */
  readonly line: number;
  /** Whether the proposal takes this line away. */
  readonly removed: boolean;
  /** The proposal's line that stands beside it. */
  readonly beside?: Beside;
}

export interface Beside {
  readonly text: string;
  readonly added: boolean;
  /** Blank columns between the document's line and the text. */
  readonly gap: number;
}

export interface Layout {
  readonly rows: readonly Row[];
  readonly diff: readonly DiffLine[];
  /** Lines of the proposal that found no line of the document to stand beside. */
  readonly hidden: number;
}

const GUTTER_COLUMNS = 4;
/** A line that is longer does not push the whole proposal out of sight. */
const WIDEST_COLUMN = 88;

/**
 * Lay out `proposed` beside the region's lines and, where it is longer, the lines that follow.
 *
 * @param old the region's lines
 * @param following the document's lines below the region
 */
export function beside(
  old: readonly string[],
  proposed: readonly string[],
  following: readonly string[],
  tabSize: number,
): Layout {
  const diff = lineDiff(old, proposed);
  const kept = diff.filter((line) => line.kind !== "added").map((line) => line.kind === "removed");
  const coming = diff.filter((line) => line.kind !== "removed");
  const extra = Math.max(0, Math.min(proposed.length - old.length, following.length));
  const lines = [...old, ...following.slice(0, extra)].map((line) => expanded(line, tabSize));
  const widths = lines.map((line) => [...line].length);
  const column = Math.min(Math.max(0, ...widths), WIDEST_COLUMN) + GUTTER_COLUMNS;
  const width = Math.max(0, ...coming.map((line) => [...expanded(line.text, tabSize)].length));
  const rows = lines.map((_, line): Row => {
    const removed = kept[line] ?? false;
    const next = coming[line];
    if (next === undefined) return { line, removed };
    const text = expanded(next.text, tabSize).padEnd(width + 1);
    const gap = Math.max(column - (widths[line] ?? 0), GUTTER_COLUMNS);
    return { line, removed, beside: { text, added: next.kind === "added", gap } };
  });
  return { rows, diff, hidden: Math.max(0, coming.length - rows.length) };
}

function expanded(line: string, tabSize: number): string {
  let out = "";
  let column = 0;
  for (const character of line) {
    const width = character === "\t" ? tabSize - (column % tabSize) : 1;
    out += character === "\t" ? " ".repeat(width) : character;
    column += width;
  }
  return out;
}
