// What was offered at a cursor, followed through what is typed into it.

import { inside, isPair } from "./pairs.ts";

/** Texts that fit at one place of one version of a document, best first. */
export interface Offer<Item> {
  readonly version: number;
  readonly line: number;
  readonly character: number;
  readonly choices: readonly Choice<Item>[];
}

export interface Choice<Item> {
  /** What is left to insert. */
  readonly text: string;
  /** What the text came with. */
  readonly item: Item;
}

/** One replacement in a document; positions are those before it. */
export interface Change {
  readonly startLine: number;
  readonly startCharacter: number;
  /** UTF-16 units that were taken away. */
  readonly removed: number;
  readonly text: string;
}

/**
 * The offer once `changes` made `version` of the document, or undefined when it no longer fits.
 *
 * It fits as long as all that happens is that somebody types what it says. Where the editor closes a
 * bracket or a quote behind the cursor, what is offered ends in front of that.
 */
export function followed<Item>(
  offer: Offer<Item>,
  changes: readonly Change[],
  version: number,
): Offer<Item> | undefined {
  if (changes.length === 0) return { ...offer, version };
  const [change] = changes;
  if (change === undefined || changes.length > 1 || change.removed > 0) return undefined;
  if (change.startLine !== offer.line || change.startCharacter !== offer.character) {
    return undefined;
  }
  const text = isPair(change.text) ? change.text.charAt(0) : change.text;
  const choices = offer.choices.flatMap(({ text: offered, item }) => {
    if (!offered.startsWith(text)) return [];
    const rest = offered.slice(text.length);
    const left = isPair(change.text) ? inside(rest, change.text) : rest;
    return left ? [{ text: left, item }] : [];
  });
  if (choices.length === 0) return undefined;
  const typed = text.split(/\r\n|\r|\n/);
  const last = typed.at(-1) ?? "";
  return {
    version,
    line: offer.line + typed.length - 1,
    character: typed.length > 1 ? last.length : offer.character + last.length,
    choices,
  };
}

/** Whether an offer is for this place of this version. */
export function isAt(
  offer: Offer<unknown>,
  version: number,
  line: number,
  character: number,
): boolean {
  return offer.version === version && offer.line === line && offer.character === character;
}
