/** The maximum delay of the clock while the event loop is not blocked. */
const RESOLUTION_MS = 100;

/**
 * A monotonic clock that is cheap to read and not exact. Reading the system's time would be most of
 * the cost of following a request. This clock reads that time ten times a second, only while in use.
 */
export class CoarseClock {
  #now = 0;
  #timer: NodeJS.Timeout | undefined;
  #wasRead = false;

  /** The time in monotonic ms. The clock stops while the event loop is blocked. Runs for every request. */
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
