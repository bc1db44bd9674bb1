/** How many series a metric may have, and what happens to the rest. */
export interface SeriesLimit {
  readonly maxSeries: number;
  /** Told of samples that were left out. */
  dropped(metric: string, samples: number): void;
}

/** Counts what is left out, by metric. */
export class DroppedSamples implements SeriesLimit {
  readonly #counts = new Map<string, number>();

  constructor(readonly maxSeries: number) {}

  dropped(metric: string, samples: number): void {
    this.#counts.set(metric, (this.#counts.get(metric) ?? 0) + samples);
  }

  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }
}
