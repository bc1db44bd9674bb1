import type { ClusterReport } from '../cluster.js';

type Workers = ClusterReport['workers'];

/** The rate covers several samples, because workers report counts with heartbeats, not for each sample. */
const WINDOW_SECONDS = 3;

/** Computes the requests per second over the last few seconds. */
export class RequestRate {
  /** The total of all requests at each of the last samples. `at` is in seconds. */
  #window: { readonly at: number; readonly total: number }[] = [];
  #total = 0;
  #bySlot: ReadonlyMap<number, number> = new Map();

  /** @param at the time in seconds. @returns `null` for the first sample. */
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

  /** Forgets the last totals. Called for a new primary, because its totals begin at 0. */
  reset(): void {
    this.#window = [];
    this.#bySlot = new Map();
  }
}
