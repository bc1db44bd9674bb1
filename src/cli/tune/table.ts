import type { Measurement } from './measurement.js';

interface Column {
  readonly title: string;
  readonly value: (measurement: Measurement) => string;
}

const MS_PER_SECOND = 1_000;
const BYTES_PER_MB = 1e6;
const UNKNOWN = '-';

const COLUMNS: readonly Column[] = [
  { title: 'workers', value: ({ setting }) => String(setting.workers) },
  { title: 'requests/s', value: (each) => short(each.requestsPerSecond) },
  { title: 'p50 ms', value: ({ p50Ms }) => p50Ms.toFixed(1) },
  { title: 'p99 ms', value: ({ p99Ms }) => p99Ms.toFixed(1) },
  { title: 'failed', value: ({ failed }) => String(failed) },
  { title: 'CPU cores', value: ({ busyCores }) => busyCores?.toFixed(2) ?? UNKNOWN },
  {
    title: 'event loop',
    value: ({ eventLoopUtilization }) => eventLoopUtilization?.toFixed(2) ?? UNKNOWN,
  },
  {
    title: 'CPU ms/request',
    value: ({ busyCores, requestsPerSecond }) =>
      busyCores === undefined
        ? UNKNOWN
        : ((busyCores / requestsPerSecond) * MS_PER_SECOND).toFixed(3),
  },
  { title: 'memory MB', value: ({ memoryBytes }) => (memoryBytes / BYTES_PER_MB).toFixed(0) },
];

const THREADS: Column = {
  title: 'threads each',
  value: ({ threads }) => (threads === undefined ? UNKNOWN : String(threads)),
};

/** A table that is printed line by line; with a column of threads where the route runs in them. */
export class Table {
  readonly #columns: readonly Column[];

  constructor(withThreads: boolean) {
    this.#columns = withThreads ? [COLUMNS[0]!, THREADS, ...COLUMNS.slice(1)] : COLUMNS;
  }

  get head(): string {
    return this.#columns.map(({ title }) => title).join('  ');
  }

  row(measurement: Measurement): string {
    return this.#columns
      .map(({ title, value }) => value(measurement).padStart(title.length))
      .join('  ');
  }
}

function short(rate: number): string {
  return rate.toFixed(rate < 100 ? 1 : 0);
}
