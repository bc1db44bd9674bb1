/** How far behind the clock may be while the event loop is free. */
const RESOLUTION_MS = 100;

/**
 * A monotonic clock for a rough idea of when something began. To ask the system for the time is
 * most of what following a request costs; here it is asked ten times a second, and not at all
 * while nobody reads this.
 */
export class CoarseClock {
  #now = 0;
  #timer: NodeJS.Timeout | undefined;
  #wasRead = false;

  /** In ms. While the event loop is blocked, it stands still. On the request path. */
  now(): number {
    if (this.#timer === undefined) this.#start();
    this.#wasRead = true;
    return this.#now;
  }

  #start(): void {
    this.#now = performance.now();
    this.#timer = setInterval(() => {
      if (!this.#wasRead) {
        clearInterval(this.#timer);
        this.#timer = undefined;
      }
      this.#wasRead = false;
      this.#now = performance.now();
    }, RESOLUTION_MS).unref();
  }
}
