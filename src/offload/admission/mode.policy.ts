/** Minimum number of calls that run in a thread first. The first calls are slow, because V8 compiles the code. */
const MIN_CALLS = 16;

/**
 * Calls of up to this many hops run on the event loop. At 4 hops a thread makes a call 1.25 times as
 * long. With a lower number more calls pay for hops, with a higher one the event loop is blocked
 * for longer.
 */
const HOPS = 4;

/** Maximum time that calls may typically take on the event loop, in ms. A hop is slow when the event loop is busy. */
const MAX_TYPICAL_MS = 1;

/**
 * Maximum debt on the event loop, in ms. One call of 4 ms is accepted, because the process may have
 * had to wait for a core. After a call of 5 ms, or after several of 1 ms, calls run in a thread.
 */
const BUDGET_MS = 20;

/** Maximum debt, in ms. A method that has become short is on the event loop after some 5,000 calls. */
const MAX_DEBT_MS = 500;

/** Maximum harm of a call in a thread, in ms. It blocked nobody, and may have waited for a core. */
const MAX_THREAD_HARM_MS = 50;

/** Weight of a hop that took longer than the estimate. A low weight makes it an estimate of the quick hops. */
const RISE = 0.05;

/**
 * Decides for one method whether calls run in a thread or on the event loop, from the times of its
 * calls. The debt is the time by which calls on the event loop would block it for longer than a
 * thread costs. Calls that are shorter than the hop pay the debt off. Without debt, calls run on
 * the event loop, until the debt is above a budget.
 */
export class ModePolicy {
  #calls = 0;
  #hopMs = 0;
  #debtMs = 0;
  #isInline = false;

  /** Whether the next call is to run on the event loop. */
  get isInline(): boolean {
    return this.#isInline;
  }

  /**
   * A call has run in a thread.
   *
   * @param bodyMs how long the method ran there.
   * @param hopMs the rest of the time that the call took: the way there and back, and the copies.
   */
  ranInThread(bodyMs: number, hopMs: number): void {
    this.#calls += 1;
    this.#learnHop(Math.max(0, hopMs));
    this.#note(Math.min(harmOf(bodyMs), MAX_THREAD_HARM_MS));
    this.#isInline = this.#debtMs === 0 && this.#calls >= MIN_CALLS;
  }

  /** A call has blocked the event loop for `bodyMs`. */
  ranInline(bodyMs: number): void {
    this.#note(harmOf(bodyMs));
    if (this.#debtMs > BUDGET_MS) this.#isInline = false;
  }

  /** A call has shown that the method does not fit the event loop, whatever its times are. */
  refuse(): void {
    this.#debtMs = MAX_DEBT_MS;
    this.#isInline = false;
  }

  #learnHop(ms: number): void {
    if (this.#calls === 1) this.#hopMs = ms;
    else if (ms < this.#hopMs) this.#hopMs = (this.#hopMs + ms) / 2;
    else this.#hopMs += RISE * (Math.min(ms, 2 * this.#hopMs) - this.#hopMs);
  }

  #note(harmMs: number): void {
    const debtMs = this.#debtMs + harmMs - Math.min(HOPS * this.#hopMs, MAX_TYPICAL_MS);
    this.#debtMs = Math.min(Math.max(0, debtMs), MAX_DEBT_MS);
  }
}

/**
 * The time that a call costs all others on the event loop, in ms. From 1 ms on it is the square: a
 * call that is twice as long delays twice as many, each for twice as long.
 */
function harmOf(ms: number): number {
  return ms * Math.max(1, ms);
}
