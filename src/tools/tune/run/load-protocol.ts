/** The request to the load generator, once it is loaded. */
export interface LoadRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /** Load before the measurement, which compiles code and spreads connections. */
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** The measurements of the load generator. */
export interface LoadReport {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers with 2xx and 3xx in the measured time. */
  readonly answered: number;
  /** Answers with 2xx and 3xx, with the warm-up. */
  readonly answeredInAll: number;
  /** Other outcomes in the measured time, by status or message of the error. */
  readonly failures: Readonly<Record<string, number>>;
  /** Cores that the load generator kept busy, with the warm-up. */
  readonly busyCores: number;
  /** Share of the time that the load generator's event loop was busy. */
  readonly utilization: number;
}

/** The messages of the load generator. */
export type LoadMessage =
  { readonly type: 'loaded' } | { readonly type: 'done'; readonly report: LoadReport };
