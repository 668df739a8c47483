// Where suggestions are off until the window is reloaded or somebody resumes.

export type Pause = "all" | "language" | "file";

/** Pauses of one window. */
export class Pauses {
  #all = false;
  readonly #languages = new Set<string>();
  readonly #files = new Set<string>();

  pauseAll(): void {
    this.#all = true;
  }

  pauseLanguage(language: string): void {
    this.#languages.add(language);
  }

  pauseFile(uri: string): void {
    this.#files.add(uri);
  }

  /** Lift whatever holds this file. */
  resume(uri: string | undefined, language: string | undefined): void {
    this.#all = false;
    if (language !== undefined) this.#languages.delete(language);
    if (uri !== undefined) this.#files.delete(uri);
  }

  /** Why a file gets no suggestions; undefined when it does. */
  of(uri: string | undefined, language: string | undefined): Pause | undefined {
    if (this.#all) return "all";
    if (language !== undefined && this.#languages.has(language)) return "language";
    if (uri !== undefined && this.#files.has(uri)) return "file";
    return undefined;
  }
}
