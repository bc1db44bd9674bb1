/** Maximum number of items, and maximum time in ms, in one turn of the event loop. */
const BATCH = 32;
const BATCH_MS = 5;

/**
 * Handles items, a few in each turn of the event loop. Otherwise thousands of calls that end
 * together would be answered in one turn, and everything else would wait.
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
