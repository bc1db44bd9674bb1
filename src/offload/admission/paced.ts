/** Handled before the event loop gets its turn: a few milliseconds of responses. */
const BATCH = 32;
const BATCH_MS = 5;

/**
 * Handles what comes, some in each turn of the event loop: thousands of calls that end together
 * would otherwise be answered in one go, and everything else would wait.
 */
export class Paced<T> {
  #items: T[] = [];

  constructor(private readonly handle: (item: T) => void) {}

  push(item: T): void {
    if (this.#items.push(item) === 1) setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    const until = performance.now() + BATCH_MS;
    let handled = 0;
    while (handled < Math.min(BATCH, this.#items.length) && performance.now() < until) {
      this.handle(this.#items[handled]!);
      handled += 1;
    }
    this.#items.splice(0, handled);
    if (this.#items.length > 0) setImmediate(this.#turn);
  };
}
