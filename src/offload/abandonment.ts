/** A thread that is nearly done is cheaper left alone than replaced: its task may end within this. */
const GRACE_MS = 50;

/** Clients that go away cost no more than a fifth of the time that threads have. */
const STARTS_BETWEEN = 5;

/** When a call is ended that nobody waits for any more: at the price of its thread. */
export class Abandonment {
  /** When the last one is, or was, ended; monotonic ms. */
  #lastAt = -Infinity;

  /** @param startMs what it takes to start a thread. */
  graceMs(now: number, startMs: number): number {
    this.#lastAt = Math.max(now + GRACE_MS, this.#lastAt + startMs * STARTS_BETWEEN);
    return this.#lastAt - now;
  }
}
