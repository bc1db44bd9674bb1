/** What is measured, and how. */
export interface Plan {
  readonly command: readonly string[];
  readonly url: string;
  readonly healthUrl: string;
  readonly metricsUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
  /** Path of the module. */
  readonly autocannon: string;
}
