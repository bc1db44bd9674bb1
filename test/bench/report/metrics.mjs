/** Stands for a value that is not there. */
export const NOTHING = '–';

const WHOLE = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const ROUNDED = new Intl.NumberFormat('en-US', { maximumSignificantDigits: 3 });

/** Three significant digits, no more than two decimals from 0.1 on: 10,400, 448, 22.3, 0.40, 0.0123. */
export function measured(value) {
  const size = Math.abs(value);
  if (size < 0.0995 || size >= 999.5) return ROUNDED.format(value);
  if (size >= 99.95) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

/** A count: whole, with separators of thousands. */
export function counted(value) {
  return WHOLE.format(value);
}

const rate = (value) => (Math.abs(value) < 100 ? measured(value) : counted(value));
const megabytes = (bytes) => measured(bytes / 1e6);
const percent = (share) => measured(share * 100);

/** "+8.12 %" */
function difference(share) {
  if (share === 0) return 'no difference';
  return `${share > 0 ? '+' : '-'}${measured(Math.abs(share) * 100)} %`;
}

/** Errors by kind, most frequent first: "timeout 3, reset 1", or "0". */
export function errorsByKind(errors) {
  const kinds = Object.entries(errors).filter(([, count]) => count > 0);
  if (kinds.length === 0) return '0';
  return kinds
    .toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
    .map(([kind, count]) => `${kind} ${counted(count)}`)
    .join(', ');
}

/** Every metric of a row, in the order of the columns: heading, format, and how rounds make one figure if not as their median. */
const METRICS = {
  requestsPerSecond: ['Requests/s', rate],
  heavyPerSecond: ['Heavy requests/s', rate],
  cpuMicros: ['CPU per request, µs', measured],
  cpuMicrosQuartile: ['lower quartile, µs', measured],
  cpuMicrosLeast: ['least, µs', measured],
  userMicros: ['user time, µs', measured],
  systemMicros: ['system time, µs', measured],
  cpuRatio: ['× nestjs-cluster', measured],
  cpuRatioQuartile: ['× nestjs-cluster, lower quartile', measured],
  cpuRatioLeast: ['× nestjs-cluster, least', measured],
  cpuRatioOfLeast: ['least × least', measured],
  difference: ['Difference', difference],
  latencyMeanMs: ['mean, ms', measured],
  p50Ms: ['p50, ms', measured],
  p99Ms: ['p99, ms', measured],
  maxMs: ['max, ms', measured],
  lightP50Ms: ['light p50, ms', measured],
  lightP99Ms: ['light p99, ms', measured],
  lightMaxMs: ['light max, ms', measured],
  lightUnanswered: ['Light unanswered', counted],
  totalMs: ['Total, ms', measured],
  longestMs: ['Longest, ms', measured],
  requests: ['Requests', counted],
  answered: ['Answered', counted],
  asked: ['Sent', counted, 'sum'],
  lost: ['Lost', counted, 'sum'],
  lostMost: ['Most lost at once', counted, 'most'],
  lostOtherwise: ['Lost otherwise', counted],
  kills: ['Kills', counted],
  reloads: ['Reloads', counted],
  inFlight: ['In flight', counted, 'most'],
  timeouts: ['Timeouts', counted],
  refused: ['Refused', counted],
  errors: ['Errors', errorsByKind],
  startMs: ['Start, ms', measured],
  reloadMs: ['A reload, ms', measured],
  recoveryMs: ['Recovery from a kill, ms', measured],
  busiestRatio: ['Busiest worker × mean', measured],
  busiestWorst: ['Busiest × mean, worst round', measured, 'most'],
  primaryCpuShare: ["Primary's share of CPU, %", percent],
  frontRssBytes: ['RSS of primary or proxy, MB', megabytes],
  frontHeapBytes: ['JavaScript heap of the primary, MB', megabytes],
  frontDescriptors: ['Open descriptors of the primary', counted],
  workerRssBytes: ['RSS of a worker, MB', megabytes],
  idleFrontRssBytes: ['RSS of an idle primary or proxy, MB', megabytes],
  idleTotalRssBytes: ['RSS in all, idle, MB', megabytes],
  idleWorkerRssBytes: ['RSS of an idle worker, MB', megabytes],
  totalRssBytes: ['RSS in all, MB', megabytes],
};

export const COLUMNS = Object.entries(METRICS).map(([key, [heading, format, combined]]) => ({
  key,
  heading,
  format,
  combined,
}));

export function columnOf(key) {
  return COLUMNS.find((column) => column.key === key);
}

/** @param {Record<string, any>} row */
export function hasMetric(row, key) {
  return row.notRun === undefined && row[key] !== undefined && row[key] !== null;
}

/** A metric of a row in the unit of its column; a dash where it was not measured. */
export function textOf(row, key) {
  return hasMetric(row, key) ? columnOf(key).format(row[key]) : NOTHING;
}

/**
 * Describes a measurement in the terminal, by one of its metrics.
 *
 * @param judgement of `Disturbances`: whether it counts, and what disturbed it.
 */
export function describeMeasurement(metrics, key, { counts, disturbed }) {
  const kinds = errorsByKind(metrics.errors ?? {});
  const judged = disturbed && `${counts ? 'disturbed' : 'discarded'}: ${disturbed}`;
  const figure = `${columnOf(key).heading}: ${textOf(metrics, key)}`;
  return [figure, kinds !== '0' && kinds, judged].filter(Boolean).join(', ');
}
