// Whether a server that ended should be started again.

const MOST = 5;
const WITHIN_MS = 180_000;

/** Counts ends in a sliding window. */
export class Crashes {
  #times: number[] = [];

  /** Of a clock that is never set, as that of the wall is. */
  constructor(private readonly clock: () => number = () => performance.now()) {}

  /** Count one more; whether starting again makes sense. */
  another(): boolean {
    const now = this.clock();
    this.#times = [...this.#times.filter((time) => now - time < WITHIN_MS), now];
    return this.#times.length < MOST;
  }

  /** The user starts the server anew. */
  forget(): void {
    this.#times = [];
  }
}
