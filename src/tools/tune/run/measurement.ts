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

/** The numbers that the app gets in its environment. */
export interface Setting {
  readonly workers: number;
  /** The threads of each worker; if not given, the app decides. */
  readonly threads?: number | undefined;
}

/** One run of the app under load. */
export interface Run {
  /** Answers with 2xx and 3xx. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Answers with another status, and requests without an answer. */
  readonly failed: number;
  /** Cores that all processes of the cluster kept busy; `undefined` if `/metrics` does not say. */
  readonly busyCores: number | undefined;
  /** The memory of all processes of the cluster, as far as it is reported. */
  readonly memoryBytes: number;
  /** The mean memory of one worker. */
  readonly workerMemoryBytes: number;
  /** Threads of each worker, if the route runs in threads. */
  readonly threads: number | undefined;
  /** Share of the time that the event loop of the busiest worker was busy, if known. */
  readonly eventLoopUtilization: number | undefined;
  /** Cores that other programs took from the app; `undefined` if they took none, or if it is not known. */
  readonly coresOfOthers: number | undefined;
  /** Share of the time that the load generator was busy. */
  readonly generatorUtilization: number;
}

/** A setting and the medians of its runs. */
export interface Measurement extends Run {
  readonly setting: Setting;
  /** How far the throughput of its runs is from their middle. */
  readonly spreadRatio: number;
}

/** The medians of all runs of a setting. */
export function measurementOf(setting: Setting, runs: readonly Run[]): Measurement {
  const of = (key: keyof Run) => median(runs.map((run) => run[key]).filter(isNumber));
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
    workerMemoryBytes: of('workerMemoryBytes')!,
    threads: of('threads'),
    eventLoopUtilization: of('eventLoopUtilization'),
    coresOfOthers: of('coresOfOthers'),
    generatorUtilization: of('generatorUtilization')!,
    spreadRatio: range / 2 / of('requestsPerSecond')!,
  };
}

function isNumber(value: number | undefined): value is number {
  return value !== undefined;
}

/** The middle value, or the mean of the two middle values. */
function median(values: readonly number[]): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, high] = [Math.floor((sorted.length - 1) / 2), Math.ceil((sorted.length - 1) / 2)];
  return sorted.length === 0 ? undefined : (sorted[low]! + sorted[high]!) / 2;
}
