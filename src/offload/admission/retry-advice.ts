/** A longer estimate would only be a guess. */
const MAX_SECONDS = 60;

/** Share of the last run in the mean: the last ten or so count. */
const WEIGHT = 0.1;

/** When it is worth coming back: from how long calls have run, and how many are ahead. */
export class RetryAdvice {
  #meanRunMs = 0;

  ran(ms: number): void {
    this.#meanRunMs =
      this.#meanRunMs === 0 ? ms : this.#meanRunMs + WEIGHT * (ms - this.#meanRunMs);
  }

  /** Whole seconds, from 1. */
  seconds(waiting: number, threads: number): number {
    const waitMs = (waiting * this.#meanRunMs) / Math.max(1, threads);
    return Math.min(Math.max(1, Math.ceil(waitMs / 1_000)), MAX_SECONDS);
  }
}
