import type { Sample } from '../../control/event-stream.js';

type Workers = Sample['cluster']['workers'];

/** Heartbeats bring the counts, and are not in step with the samples. */
const WINDOW_SECONDS = 3;

interface Counted {
  readonly at: number;
  readonly bySlot: ReadonlyMap<number, number>;
}

/** Requests a second over the last few seconds. */
export class RequestRate {
  #window: Counted[] = [];

  /** @param at seconds. @returns `null` until there is something to compare with. */
  next(at: number, workers: Workers): number | null {
    // A slot that is being replaced is there twice, with the count of the slot.
    const now = { at, bySlot: new Map(workers.map((each) => [each.slot, each.requestsTotal])) };
    const before = this.#window[0];
    this.#window.push(now);
    while (this.#window.length > 1 && at - this.#window[0]!.at >= WINDOW_SECONDS) {
      this.#window.shift();
    }
    if (before === undefined || at <= before.at) return null;
    let requests = 0;
    for (const [slot, count] of now.bySlot) {
      requests += Math.max(0, count - (before.bySlot.get(slot) ?? count));
    }
    return requests / (at - before.at);
  }

  /** Another primary counts anew. */
  reset(): void {
    this.#window = [];
  }
}
