// Whether the user looks at this window: windows share an engine, and the one in focus goes first.

export const FOCUS_METHOD = "dg/didChangeFocus";

/** Tells a server of the focus when it starts and at each change. */
export class Focus {
  #told: boolean | undefined;

  constructor(
    private readonly isFocused: () => boolean,
    private readonly tell: (focused: boolean) => void,
  ) {}

  /** A server runs that was told nothing yet. */
  begin(): void {
    this.#told = undefined;
    this.update();
  }

  /** The window's state changed, perhaps in another way. */
  update(): void {
    const focused = this.isFocused();
    if (focused === this.#told) return;
    this.#told = focused;
    this.tell(focused);
  }
}
