import { type MetricFamily, plainFamily } from './metric-family.js';

/** How many series a metric may have, and what happens to the rest. */
export interface SeriesLimit {
  readonly maxSeries: number;
  /** Told of samples that were left out. */
  dropped(metric: string, samples: number): void;
}

/** Counts what is left out, by metric. */
export class DroppedSamples implements SeriesLimit {
  readonly #counts: Map<string, number>;

  /** @param counts what was left out before; added to. */
  constructor(
    readonly maxSeries: number,
    counts = new Map<string, number>(),
  ) {
    this.#counts = counts;
  }

  dropped(metric: string, samples: number): void {
    this.#counts.set(metric, (this.#counts.get(metric) ?? 0) + samples);
  }

  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }
}

/** The counter of what was left out. */
export function droppedFamily(prefix: string, counts: ReadonlyMap<string, number>): MetricFamily {
  return plainFamily(
    'counter',
    `${prefix}nestjs_cluster_dropped_samples_total`,
    'Samples left out because their metric had more series than metrics.maxSeries',
    [...counts].map(([metric, samples]) => [{ metric }, samples]),
  );
}
