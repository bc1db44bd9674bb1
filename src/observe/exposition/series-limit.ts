import { type MetricFamily, plainFamily } from './metric-family.js';

/** Maximum number of series of a metric; further series are left out. Only an unbounded label makes that many. */
const MAX_SERIES = 10_000;

/** Limits the number of series of a metric, and counts the samples that are left out. */
export class SeriesLimit {
  /** By metric, the number of samples that were left out. */
  readonly counts = new Map<string, number>();

  constructor(readonly maxSeries = MAX_SERIES) {}

  /** Counts samples that were left out. */
  dropped(metric: string, samples: number): void {
    this.counts.set(metric, (this.counts.get(metric) ?? 0) + samples);
  }
}

/** The counter of left out samples. */
export function droppedFamily(counts: ReadonlyMap<string, number>): MetricFamily {
  return plainFamily(
    'counter',
    'nestjs_cluster_dropped_samples_total',
    'Samples left out because their metric had too many series',
    [...counts].map(([metric, samples]) => [{ metric }, samples]),
  );
}
