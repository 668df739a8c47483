// Which lines stay, go and come between two short texts.

export type LineKind = "same" | "removed" | "added";

export interface DiffLine {
  readonly kind: LineKind;
  readonly text: string;
}

/** A shortest line diff; removed lines stand before added ones. */
export function lineDiff(old: readonly string[], now: readonly string[]): DiffLine[] {
  const common = commonLengths(old, now);
  const diff: DiffLine[] = [];
  let o = 0;
  let n = 0;
  while (o < old.length || n < now.length) {
    const before = old[o];
    const after = now[n];
    if (before !== undefined && before === after) {
      diff.push({ kind: "same", text: before });
      o += 1;
      n += 1;
    } else if (
      before !== undefined &&
      (after === undefined || at(common, o + 1, n) >= at(common, o, n + 1))
    ) {
      diff.push({ kind: "removed", text: before });
      o += 1;
    } else if (after !== undefined) {
      diff.push({ kind: "added", text: after });
      n += 1;
    }
  }
  return diff;
}

/** How many lines come and go. */
export function counts(diff: readonly DiffLine[]): { added: number; removed: number } {
  const of = (kind: LineKind) => diff.filter((line) => line.kind === kind).length;
  return { added: of("added"), removed: of("removed") };
}

/** The diff as the body of a unified diff. */
export function unified(diff: readonly DiffLine[]): string {
  const marks = { same: " ", removed: "-", added: "+" };
  return diff.map((line) => `${marks[line.kind]}${line.text}`).join("\n");
}

/** `[o][n]`: length of the longest common run of lines from there on. */
function commonLengths(old: readonly string[], now: readonly string[]): number[][] {
  const table = Array.from({ length: old.length + 1 }, () => Array<number>(now.length + 1).fill(0));
  for (let o = old.length - 1; o >= 0; o -= 1) {
    for (let n = now.length - 1; n >= 0; n -= 1) {
      const row = table[o];
      if (row === undefined) continue;
      row[n] =
        old[o] === now[n]
          ? at(table, o + 1, n + 1) + 1
          : Math.max(at(table, o + 1, n), at(table, o, n + 1));
    }
  }
  return table;
}

function at(table: readonly number[][], o: number, n: number): number {
  return table[o]?.[n] ?? 0;
}
