// What `dg-lsp model list` prints.

export interface Model {
  readonly name: string;
  readonly size: string;
  readonly folder: string;
}

/** A line is a name, a size and a folder, with at least two blanks between them. */
export function modelsOf(printed: string): Model[] {
  return printed.split(/\r?\n/).flatMap((line) => {
    const [, name, size, folder] = /^(\S.*?)\s{2,}([\d.]+ \S+)\s{2}(\S.*)$/.exec(line) ?? [];
    return name && size && folder ? [{ name, size, folder }] : [];
  });
}
