import type { Row } from '../exposition/metric-family.js';

/** The counts of one series of a histogram. */
export class Buckets {
  /** Counts of observations above the previous bound and up to each bound. The last count is for +Inf. */
  readonly #counts: number[];
  #sum = 0;

  constructor(private readonly bounds: readonly number[]) {
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  /** Runs for every request, so it must be cheap. */
  add(value: number): void {
    const { bounds } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1;
    this.#counts[bucket]! += 1;
    this.#sum += value;
  }

  get used(): boolean {
    return this.#counts.some((count) => count > 0);
  }

  /** Cumulative counts, sum and count: the columns of `histogramColumns()`. */
  row(): Row {
    let count = 0;
    const cumulative = this.#counts.map((each) => (count += each));
    return [...cumulative, this.#sum, count];
  }
}
