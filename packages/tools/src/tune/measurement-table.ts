import { type Column, formatMegabytes, formatNumber, formatTable } from '../control/view/table.js';
import type { Measurement } from './run/measurement.js';

const MS_PER_SECOND = 1_000;

const COLUMNS: readonly Column<Measurement>[] = [
  { title: 'workers', value: ({ setting }) => String(setting.workers) },
  { title: 'threads each', value: ({ threads }) => figure(threads) },
  {
    title: 'requests/s',
    value: ({ requestsPerSecond: rate }) => rate.toFixed(rate < 100 ? 1 : 0),
  },
  { title: 'p50 ms', value: ({ p50Ms }) => p50Ms.toFixed(1) },
  { title: 'p99 ms', value: ({ p99Ms }) => p99Ms.toFixed(1) },
  { title: 'failed', value: ({ failed }) => String(failed) },
  { title: 'CPU cores', value: ({ busyCores }) => figure(busyCores, 2) },
  { title: 'event loop', value: ({ eventLoopUtilization }) => figure(eventLoopUtilization, 2) },
  {
    title: 'CPU ms/request',
    value: ({ busyCores, requestsPerSecond }) =>
      figure(busyCores && (busyCores / requestsPerSecond) * MS_PER_SECOND, 3),
  },
  { title: 'memory MB', value: ({ memoryBytes }) => formatMegabytes(memoryBytes) },
];

/** A table with a row for each measurement. The table has a column of threads if the route uses threads. */
export function measurementTable(measurements: readonly Measurement[]): string[] {
  const hasThreads = measurements.some(({ threads }) => threads !== undefined);
  const columns = COLUMNS.filter(({ title }) => hasThreads || title !== 'threads each');
  return formatTable(columns, measurements);
}

const figure = (value: number | undefined, digits = 0): string =>
  formatNumber(value ?? null, digits);
