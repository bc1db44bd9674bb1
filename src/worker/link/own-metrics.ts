import {
  MAX_METRICS_BODY_LENGTH,
  type MetricsContribution,
  type MetricsSource,
} from '../../contract/snapshot/index.js';

/** The metrics of this process as text. */
export class OwnMetrics {
  #source: MetricsSource | undefined;
  readonly #contributions: MetricsContribution[] = [];
  /** When the metrics were last serialized, in monotonic ms. */
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

  /** Serializes the metrics. If that fails, or the text is too large, returns the metrics of the last call. */
  async serialize(): Promise<{ readonly body: string; readonly ageMs: number }> {
    if (this.#source === undefined) return { body: '', ageMs: 0 };
    // Ignores errors, because the source has logged them.
    const body = this.#sealed ? undefined : await this.#source.serialize().catch(() => undefined);
    if (body !== undefined && body.length <= MAX_METRICS_BODY_LENGTH) {
      this.#lastBody = body;
      this.serializedAt = performance.now();
      return { body, ageMs: 0 };
    }
    const ageMs = this.#lastBody === '' ? 0 : Math.round(performance.now() - this.serializedAt);
    return { body: this.#lastBody, ageMs };
  }

  /** Makes {@link serialize} return the metrics of its last call from now on. */
  seal(): void {
    this.#sealed = true;
  }
}
