/** The message that starts the load. The load generator takes it once it has sent 'loaded'. */
export interface LoadRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /**
   * How long to load the app before the measurement: code gets compiled, connections get balanced.
   */
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** The measurements of the load generator. */
export interface LoadReport {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The number of answers with 2xx or 3xx during the measurement. */
  readonly answered: number;
  /** The number of answers with 2xx or 3xx during the warm-up and the measurement. */
  readonly answeredInAll: number;
  /** How often each other status or error came during the measurement, by status or message. */
  readonly failures: Readonly<Record<string, number>>;
  /** The cores that the load generator kept busy during the warm-up and the measurement. */
  readonly busyCores: number;
  /** The share of the measurement in which the load generator's event loop was busy. */
  readonly utilization: number;
}

/** The messages of the load generator. */
export type LoadMessage =
  { readonly type: 'loaded' } | { readonly type: 'done'; readonly report: LoadReport };
