import type { Sample } from '../../control/event-stream.js';

type Workers = Sample['cluster']['workers'];

/** The counts come with heartbeats, at other moments than the samples. */
const WINDOW_SECONDS = 3;

/** Requests a second over the last few seconds. */
export class RequestRate {
  /** All requests so far, by time in seconds. */
  #window: { readonly at: number; readonly total: number }[] = [];
  #total = 0;
  #bySlot: ReadonlyMap<number, number> = new Map();

  /** @param at seconds. @returns `null` until there is something to compare with. */
  next(at: number, workers: Workers): number | null {
    // A slot that is being replaced is listed twice, both times with the count of the slot.
    const counts = new Map(workers.map((each) => [each.slot, each.requestsTotal]));
    for (const [slot, count] of counts) {
      this.#total += Math.max(0, count - (this.#bySlot.get(slot) ?? count));
    }
    this.#bySlot = counts;
    while (this.#window.length > 1 && at - this.#window[0]!.at > WINDOW_SECONDS) {
      this.#window.shift();
    }
    const before = this.#window[0];
    this.#window.push({ at, total: this.#total });
    return before === undefined || at <= before.at
      ? null
      : (this.#total - before.total) / (at - before.at);
  }

  /** Another primary counts from 0. */
  reset(): void {
    this.#window = [];
    this.#bySlot = new Map();
  }
}
