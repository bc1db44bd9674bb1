import { SLOT_TOTALS, type WorkerStats } from '../../contract/snapshot/index.js';

type SlotTotals = Record<(typeof SLOT_TOTALS)[number], number>;

/** Counts over all workers of a slot since the primary started. */
export class SlotCounts {
  /** Messages of ours that were not understood. */
  droppedMessages = 0;
  /** Metrics that were too large together with all others. */
  refusedMetrics = 0;
  readonly #gone = Object.fromEntries(SLOT_TOTALS.map((name) => [name, 0])) as SlotTotals;

  /** A worker is gone: what it counted stays. */
  keep(stats: Partial<WorkerStats> | undefined): void {
    for (const name of SLOT_TOTALS) this.#gone[name] += stats?.[name] ?? 0;
  }

  /** @param live what the workers that are there have said last. */
  totals(live: readonly (Partial<WorkerStats> | undefined)[]): Readonly<SlotTotals> {
    const totals = { ...this.#gone };
    for (const name of SLOT_TOTALS) {
      for (const stats of live) totals[name] += stats?.[name] ?? 0;
      // Sums of floats depend on their order, and Prometheus takes the smallest fall for a restart.
      totals[name] = Math.round(totals[name] * 1e6) / 1e6;
    }
    return totals;
  }
}
