import type { Elapsed } from '../task/stopwatch.js';

/** Minimum number of calls that run in a thread first. The first calls are slow, because V8 compiles the code. */
const MIN_CALLS = 16;

/**
 * Calls of up to this many hops run on the event loop. A thread makes a longer call at most 1.1 times
 * as long, which is little for an event loop that stays free.
 */
const HOPS = 10;

/** Maximum time that calls may typically take on the event loop, in ms. A hop is slow when the event loop is busy. */
const MAX_TYPICAL_MS = 1;

/** Maximum debt on the event loop, in ms. One call of 5 ms, or several of 2 ms, are too much. */
const BUDGET_MS = 20;

/** Maximum debt, in ms. A method that has become short is on the event loop after some 5,000 calls. */
const MAX_DEBT_MS = 1_000;

/** Maximum harm of a call in a thread, in ms. It blocked nobody. */
const MAX_THREAD_HARM_MS = 100;

/**
 * Maximum harm of a call that waited, in ms. A wait for a core is seldom and says nothing about the
 * method. A method that waits in every call, for a file, has a debt anyway.
 */
const MAX_WAIT_HARM_MS = 2;

/** No hop is shorter, in ms. An estimate of 0 would stay 0. */
const MIN_HOP_MS = 0.001;

/** How much a hop changes the estimate, as a share of it. Equal steps up and down lead to the median. */
const STEP = 0.05;

/**
 * Decides for one method whether calls run in a thread or on the event loop, from the times of its
 * calls. Calls that take longer than the limit make a debt, and calls that take less pay it off.
 * When the debt is paid, calls run on the event loop, until the debt is above a budget.
 */
export class ModePolicy {
  #calls = 0;
  #hopMs = Infinity;
  #debtMs = 0;
  #isInline = false;

  /** Whether the next call is to run on the event loop. */
  get isInline(): boolean {
    return this.#isInline;
  }

  /**
   * A call has run in a thread.
   *
   * @param body how long the method ran there.
   * @param hopMs the rest of the time that the call took: the way there and back, and the copies.
   */
  ranInThread(body: Elapsed, hopMs: number): void {
    this.#calls += 1;
    this.#learnHop(Math.max(MIN_HOP_MS, hopMs));
    this.#note(Math.min(harmOf(body), MAX_THREAD_HARM_MS));
  }

  /** A call has blocked the event loop. */
  ranInline(body: Elapsed): void {
    this.#note(harmOf(body));
  }

  /** A call has shown that the method does not fit the event loop, whatever its times are. */
  refuse(): void {
    this.#debtMs = MAX_DEBT_MS;
    this.#isInline = false;
  }

  #learnHop(ms: number): void {
    if (this.#calls <= MIN_CALLS) this.#hopMs = Math.min(this.#hopMs, ms);
    else this.#hopMs *= ms > this.#hopMs ? 1 + STEP : 1 - STEP;
  }

  #note(harmMs: number): void {
    const debtMs = this.#debtMs + harmMs - Math.min(HOPS * this.#hopMs, MAX_TYPICAL_MS);
    this.#debtMs = Math.min(Math.max(0, debtMs), MAX_DEBT_MS);
    if (this.#debtMs > BUDGET_MS) this.#isInline = false;
    else if (this.#debtMs === 0 && this.#calls >= MIN_CALLS) this.#isInline = true;
  }
}

/**
 * How much a call would delay others on the event loop. It is the call's time, and from 1 ms on the
 * square of it: a call that is twice as long delays twice as many others, each for twice as long.
 * If the process rather waited, only a part of the wait counts.
 */
function harmOf({ ms, cpuMs }: Elapsed): number {
  return Math.max(squared(cpuMs), Math.min(squared(ms), MAX_WAIT_HARM_MS));
}

function squared(ms: number): number {
  return ms * Math.max(1, ms);
}
