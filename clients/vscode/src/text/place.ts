// Places as the command line names them.

/** FILE:LINE:COLUMN from 1, where a column counts characters and not UTF-16 units. */
export function placeArgument(
  path: string,
  line: number,
  lineText: string,
  character: number,
): string {
  return `${path}:${line + 1}:${[...lineText.slice(0, character)].length + 1}`;
}
