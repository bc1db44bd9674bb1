import { COUNTERS } from '../../contract/snapshot/stats.js';
import { type CounterName, type WorkerStats } from '../../contract/snapshot/index.js';

type SlotTotals = Record<CounterName, number>;

/** Counts over all workers of a slot since the primary started. */
export class SlotCounts {
  /** Messages of this package that were not understood. */
  droppedMessages = 0;
  readonly #gone = Object.fromEntries(COUNTERS.map((name) => [name, 0])) as SlotTotals;

  /** Adds the counts of a worker that has exited. */
  keep(stats: Partial<WorkerStats> | undefined): void {
    for (const name of COUNTERS) this.#gone[name] += stats?.[name] ?? 0;
  }

  /** @param live the last statistics of the workers that run now. */
  totals(live: readonly (Partial<WorkerStats> | undefined)[]): Readonly<SlotTotals> {
    const totals = { ...this.#gone };
    for (const name of COUNTERS) {
      for (const stats of live) totals[name] += stats?.[name] ?? 0;
      // Rounded, because a sum of floats depends on the order. Prometheus would take a tiny fall for a restart.
      totals[name] = Math.round(totals[name] * 1e6) / 1e6;
    }
    return totals;
  }
}
