import { type MetricFamily, plainFamily } from './metric-family.js';

/** More series come from a label with unbounded values. */
export const MAX_SERIES = 10_000;

/** How many series a metric may have. It counts what is left out. */
export class SeriesLimit {
  /** @param counts samples that were left out before, by metric; added to. */
  constructor(
    readonly maxSeries: number,
    readonly counts: Map<string, number> = new Map(),
  ) {}

  /** Samples were left out. */
  dropped(metric: string, samples: number): void {
    this.counts.set(metric, (this.counts.get(metric) ?? 0) + samples);
  }
}

/** The counter of what was left out. */
export function droppedFamily(prefix: string, counts: ReadonlyMap<string, number>): MetricFamily {
  return plainFamily(
    'counter',
    `${prefix}nestjs_cluster_dropped_samples_total`,
    'Samples left out because their metric had too many series',
    [...counts].map(([metric, samples]) => [{ metric }, samples]),
  );
}
