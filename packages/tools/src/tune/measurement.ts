import type { Autocannon } from './load.js';

/** The app and the route to measure, and the load. */
export interface Plan {
  readonly command: readonly string[];
  readonly url: string;
  readonly healthUrl: string;
  readonly metricsUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
  readonly autocannon: Autocannon;
}

/** The numbers of workers and threads that the app gets by environment variables. */
export interface Setting {
  readonly workers: number;
  /** The number of threads per worker. `undefined`: the app decides. */
  readonly threads?: number | undefined;
}

/** One run of the app under load. */
export interface Run {
  /** The number of answers with 2xx or 3xx per second. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The number of requests that got another status, or no answer. */
  readonly failed: number;
  /** The cores that all processes of the cluster kept busy. `undefined` without metrics. */
  readonly busyCores: number | undefined;
  /** The memory of all workers. */
  readonly memoryBytes: number;
  /** The number of threads per worker. `undefined` if the route does not run in threads. */
  readonly threads: number | undefined;
  /** The share of the time in which the busiest worker's event loop was busy, if known. */
  readonly eventLoopUtilization: number | undefined;
  /** The share of the time in which the load generator's event loop was busy. */
  readonly generatorUtilization: number;
}

/** A setting and the medians of its runs. */
export interface Measurement extends Run {
  readonly setting: Setting;
  /** Half the difference between the best and the worst throughput of the runs, as a share of the median. */
  readonly spreadRatio: number;
}

/** The medians of all runs of a setting. */
export function measurementOf(setting: Setting, runs: readonly Run[]): Measurement {
  const of = (key: keyof Run) =>
    median(runs.map((run) => run[key]).filter((value) => value !== undefined));
  const rates = runs.map(({ requestsPerSecond }) => requestsPerSecond);
  const range = Math.max(...rates) - Math.min(...rates);
  return {
    setting,
    requestsPerSecond: of('requestsPerSecond')!,
    p50Ms: of('p50Ms')!,
    p99Ms: of('p99Ms')!,
    failed: runs.reduce((sum, { failed }) => sum + failed, 0),
    busyCores: of('busyCores'),
    memoryBytes: of('memoryBytes')!,
    threads: of('threads'),
    eventLoopUtilization: of('eventLoopUtilization'),
    generatorUtilization: of('generatorUtilization')!,
    spreadRatio: range / 2 / of('requestsPerSecond')!,
  };
}

/** The middle value, or the mean of the two middle values. */
function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [Math.floor((sorted.length - 1) / 2), Math.ceil((sorted.length - 1) / 2)];
  return sorted.length === 0 ? undefined : (sorted[low]! + sorted[high]!) / 2;
}
