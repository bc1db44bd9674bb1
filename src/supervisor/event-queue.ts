/**
 * Handles events one after the other, in the order in which they happened: an
 * event that a handler causes waits until that handler is done.
 */
export class EventQueue<E> {
  readonly #waiting: E[] = [];
  #handling = false;

  /** @param failed is told what a handler threw; the loop goes on with the next event. */
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
        // it cannot even be reported: the loop goes on anyway
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
