/** Handled before the event loop gets its turn: a few milliseconds of responses. */
const BATCH = 32;

/**
 * Handles what comes, some in each turn of the event loop: thousands of calls
 * whose time is up together would otherwise be answered in one go, and
 * everything else would wait.
 */
export class Paced<T> {
  #items: T[] = [];

  constructor(private readonly handle: (item: T) => void) {}

  push(item: T): void {
    if (this.#items.push(item) === 1) setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    for (const item of this.#items.splice(0, BATCH)) this.handle(item);
    if (this.#items.length > 0) setImmediate(this.#turn);
  };
}
