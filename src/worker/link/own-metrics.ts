import {
  MAX_METRICS_BODY_LENGTH,
  type MetricsContribution,
  type MetricsSource,
} from '../../contract/snapshot/index.js';

/** The metrics of this process, in the text format. */
export class OwnMetrics {
  #source: MetricsSource | undefined;
  readonly #contributions: MetricsContribution[] = [];
  /** Monotonic ms. */
  serializedAt = -Infinity;
  #lastBody = '';
  #sealed = false;

  provide(source: MetricsSource): void {
    this.#source = source;
    for (const contribution of this.#contributions) void source.extend?.(contribution);
  }

  contribute(contribution: MetricsContribution): void {
    this.#contributions.push(contribution);
    void this.#source?.extend?.(contribution);
  }

  /** If they cannot be read or are too large, these are the metrics of the last time. */
  async serialize(): Promise<{ readonly body: string; readonly ageMs: number }> {
    if (this.#source === undefined) return { body: '', ageMs: 0 };
    // The source has logged what is wrong with metrics of the app.
    const body = this.#sealed ? undefined : await this.#source.serialize().catch(() => undefined);
    if (body !== undefined && body.length <= MAX_METRICS_BODY_LENGTH) {
      this.#lastBody = body;
      this.serializedAt = performance.now();
      return { body, ageMs: 0 };
    }
    const ageMs = this.#lastBody === '' ? 0 : Math.round(performance.now() - this.serializedAt);
    return { body: this.#lastBody, ageMs };
  }

  /** Merges the metrics of workers that are gone; `undefined` without metrics. */
  fold(bodies: readonly string[]): string | undefined {
    return this.#source?.fold(bodies);
  }

  /** The last metrics are final. */
  seal(): void {
    this.#sealed = true;
  }
}
