/** Maximum advice, in seconds. A longer estimate would only be a guess. */
const MAX_SECONDS = 60;

/** Weight of the latest run in the mean run time. With this weight, about the last ten runs count. */
const WEIGHT = 0.1;

/** Estimates when a refused call may be tried again, from the mean run time and the length of the queue. */
export class RetryAdvice {
  #meanRunMs = 0;

  ran(ms: number): void {
    this.#meanRunMs =
      this.#meanRunMs === 0 ? ms : this.#meanRunMs + WEIGHT * (ms - this.#meanRunMs);
  }

  /** @returns a whole number of seconds, 1..60. */
  seconds(waiting: number, threads: number): number {
    const waitMs = (waiting * this.#meanRunMs) / Math.max(1, threads);
    return Math.min(Math.max(1, Math.ceil(waitMs / 1_000)), MAX_SECONDS);
  }
}
