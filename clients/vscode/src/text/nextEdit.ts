// A proposed edit of one line, followed through what is edited around it.

import { movedByAll, type Region, type Replacement } from "./region.ts";

/** New text for a part of one line; columns are UTF-16 units. */
export interface LineEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** An edit that is shown, and may move. */
export interface Kept extends LineEdit {
  /** Its whole line, without the break. */
  readonly line: Region;
  /** What the line reads. */
  readonly lineText: string;
  /** What was edited before it was proposed. */
  readonly cause: Region;
}

/** The edit after changes, or undefined when they touched its line or what it follows from. */
export function followed<K extends Kept>(kept: K, changes: readonly Replacement[]): K | undefined {
  const line = movedByAll(kept.line, changes);
  const cause = causeAfter(kept.cause, changes);
  return line && cause && { ...kept, line, cause };
}

/**
 * The edits with one more; the last one is the one that is shown.
 *
 * A new one is shown, unless it makes the same change as an older one that still stands: then it
 * waits its turn, for the older one is the nearer.
 */
export function added<K extends Kept>(edits: readonly K[], edit: K): readonly K[] {
  const place = edits.findIndex(({ line }) => line.start === edit.line.start);
  if (place >= 0) return edits.with(place, edit);
  const turn = edits.findIndex((one) => changeOf(one) === changeOf(edit));
  return edits.toSpliced(turn < 0 ? edits.length : turn, 0, edit);
}

function changeOf({ lineText, start, end, text }: Kept): string {
  return JSON.stringify([lineText.slice(start, end), text]);
}

/** What was edited last, with changes that go on with it as one; regions are after the changes. */
export function causeOf(before: Region | undefined, changes: readonly Replacement[]): Region {
  const ordered = [...changes].sort((a, b) => a.offset - b.offset);
  let grown = 0;
  let now: Region | undefined;
  for (const { offset, removed, text } of ordered) {
    const start = offset + grown;
    now = { start: now?.start ?? start, end: start + text.length };
    grown += text.length - removed;
  }
  now ??= { start: 0, end: 0 };
  const goesOn =
    before !== undefined &&
    ordered.some((one) => one.offset <= before.end && one.offset + one.removed >= before.start);
  if (!goesOn) return now;
  return {
    start: Math.min(now.start, placeAfter(before.start, ordered)),
    end: Math.max(now.end, placeAfter(before.end, ordered)),
  };
}

/** Where a cause is after changes; undefined when it was touched, or a word of it went on. */
export function causeAfter(cause: Region, changes: readonly Replacement[]): Region | undefined {
  if (changes.some((change) => touches(change, cause))) return undefined;
  const before = changes.filter(({ offset, removed }) => offset + removed <= cause.start);
  const by = before.reduce((sum, { text, removed }) => sum + text.length - removed, 0);
  return { start: cause.start + by, end: cause.end + by };
}

function touches({ offset, removed, text }: Replacement, { start, end }: Region): boolean {
  const last = offset + removed;
  if (start === end) return offset <= start && last >= start;
  if (offset < end && last > start) return true;
  return (offset === end && WORD_AHEAD.test(text)) || (last === start && WORD_BEHIND.test(text));
}

/** A place behind changes that are ordered and do not overlap. */
function placeAfter(place: number, ordered: readonly Replacement[]): number {
  let by = 0;
  for (const { offset, removed, text } of ordered) {
    if (offset >= place) break;
    // A place in what was taken away ends up behind what came for it.
    const gone = Math.min(removed, place - offset);
    by += text.length - gone;
  }
  return place + by;
}

const WORD_AHEAD = /^[\p{L}\p{N}_]/u;
const WORD_BEHIND = /[\p{L}\p{N}_]$/u;

/**
 * The same edit for the eye: words that it changes in the middle are replaced whole.
 *
 * What only comes or only goes stays as it is.
 */
export function readable(line: string, { start, end, text }: LineEdit): LineEdit {
  const old = line.slice(start, end);
  if (old === "" || text === "") return { start, end, text };
  const isInWord = (edge: RegExp) => edge.test(old) || edge.test(text);
  const head = isInWord(WORD_AHEAD) ? headOfWord(line.slice(0, start)) : "";
  const tail = isInWord(WORD_BEHIND) ? tailOfWord(line.slice(end)) : "";
  return { start: start - head.length, end: end + tail.length, text: head + text + tail };
}

/** What of a word stands at the end of a text. */
export function headOfWord(before: string): string {
  return /[\p{L}\p{N}_]*$/u.exec(before)?.[0] ?? "";
}

/** What of a word stands at the beginning of a text. */
export function tailOfWord(behind: string): string {
  return /^[\p{L}\p{N}_]*/u.exec(behind)?.[0] ?? "";
}

/** A line with an edit made. */
export function made(line: string, { start, end, text }: LineEdit): string {
  return line.slice(0, start) + text + line.slice(end);
}

/** Whether Tab is for indenting at a cursor with this text before it on its line. */
export function indents(before: string): boolean {
  return before.trim() === "";
}
