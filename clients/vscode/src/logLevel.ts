// How serious a line is that the server wrote to standard error.

export type Level = "error" | "warn" | "info" | "debug";

const LEVELS: Readonly<Record<string, Level>> = {
  CRITICAL: "error",
  ERROR: "error",
  WARNING: "warn",
  INFO: "info",
  DEBUG: "debug",
};

/** "WARNING name: text" names its level; a traceback's lines name none and are errors. */
export function levelOf(line: string): Level {
  const word = /^([A-Z]+) /.exec(line)?.[1];
  return (word !== undefined && LEVELS[word]) || "error";
}
