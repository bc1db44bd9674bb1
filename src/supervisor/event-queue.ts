/**
 * Handles events one after the other, in the order in which they were posted. If a handler posts an
 * event, the event waits until that handler is done.
 */
export class EventQueue<E> {
  readonly #waiting: E[] = [];
  #handling = false;

  /** @param failed gets the error that a handler threw. The next event is handled anyway. */
  constructor(
    private readonly handle: (event: E) => void,
    private readonly failed: (event: E, error: unknown) => void,
  ) {}

  #handleOne(event: E): void {
    try {
      this.handle(event);
    } catch (error) {
      try {
        this.failed(event, error);
      } catch {
        // the error cannot be reported; the next event is handled anyway
      }
    }
  }

  post(event: E): void {
    this.#waiting.push(event);
    if (this.#handling) return;
    this.#handling = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        this.#handleOne(next);
      }
    } finally {
      this.#handling = false;
    }
  }
}
