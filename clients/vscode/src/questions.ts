// Questions about a text that changes: asked after a pause, one at a time, forgotten when late.

/** Asks once nothing happened for a while; whatever happens ends the question before. */
export class Questions {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #asking: AbortController | undefined;

  /**
   * @param ask asks and makes use of the answer, unless the signal says that it is late
   * @param failed told of errors of questions that are still wanted
   * @param settled told when a question is over that no other one followed
   */
  constructor(
    private readonly ask: (signal: AbortSignal) => Promise<void>,
    private readonly failed: (error: unknown) => void,
    private readonly settled: () => void = () => {},
  ) {}

  /** Ask after `pauseMs` milliseconds in which nothing else is wanted. */
  soon(pauseMs: number): void {
    this.stop();
    this.#timer = setTimeout(() => void this.#run(), pauseMs);
  }

  /** End the question that waits or is being asked. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#asking?.abort();
    this.#asking = undefined;
  }

  async #run(): Promise<void> {
    this.#timer = undefined;
    const asking = new AbortController();
    this.#asking = asking;
    try {
      await this.ask(asking.signal);
    } catch (error) {
      if (!asking.signal.aborted) this.failed(error);
    }
    if (this.#asking !== asking) return;
    this.#asking = undefined;
    this.settled();
  }
}
