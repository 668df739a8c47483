// Brackets and quotes that an editor closes by itself.

const PAIRS: ReadonlySet<string> = new Set(["()", "[]", "{}", '""', "''", "``"]);
const QUOTES = "\"'`";

/** Whether a text is an opening bracket or quote that was typed, and the closing one that came. */
export function isPair(text: string): boolean {
  return PAIRS.has(text);
}

/**
 * What of a text stands in front of the closing half of a pair.
 *
 * @param text what follows the opening half
 * @returns undefined when the text does not close the pair
 */
export function inside(text: string, pair: string): string | undefined {
  const [opener = "", closer = ""] = pair;
  let depth = 0;
  let quote = opener === closer ? opener : "";
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (quote !== "") {
      if (character === "\\") at += 1;
      else if (character === quote && quote === closer) return text.slice(0, at);
      else if (character === quote) quote = "";
    } else if (QUOTES.includes(character)) quote = character;
    else if (character === opener) depth += 1;
    else if (character === closer && depth > 0) depth -= 1;
    else if (character === closer) return text.slice(0, at);
  }
  return undefined;
}
