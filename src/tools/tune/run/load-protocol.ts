/** The request to the load generator, once it is loaded. */
export interface LoadRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /** The time of unmeasured load, in which code is compiled and connections are spread. */
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** The measurements of the load generator. */
export interface LoadReport {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers with 2xx and 3xx while it measured. */
  readonly answered: number;
  /** Answers with 2xx and 3xx in all, the warm-up's too. */
  readonly answeredInAll: number;
  /** Everything else while it measured, by what it was: `503`, an error's message. */
  readonly failures: Readonly<Record<string, number>>;
  /** Cores that it kept busy, the warm-up included. */
  readonly busyCores: number;
  /** Share of the time that its event loop was busy. */
  readonly utilization: number;
}

/** From the load generator: it is loaded, or has ended. */
export type LoadMessage =
  { readonly type: 'loaded' } | { readonly type: 'done'; readonly report: LoadReport };
