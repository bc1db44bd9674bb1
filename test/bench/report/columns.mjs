import {
  counted,
  difference,
  errorsByKind,
  measured,
  megabytes,
  percent,
  rate,
  yesOrNo,
} from './format.mjs';

/**
 * Every metric that a row may have, in the order of the tables. `title` is how
 * charts and sentences call it; `combined` how rounds make one figure, where that is not their median; `heading` the head of its column, where that is
 * not title and unit; `better` is missing where neither less nor more is.
 */
const METRICS = {
  requestsPerSecond: {
    title: 'Requests per second',
    heading: 'Requests/s',
    unit: '/s',
    format: rate,
    better: 'higher',
  },
  heavyPerSecond: {
    title: 'Heavy requests per second',
    heading: 'Heavy requests/s',
    unit: '/s',
    format: rate,
    better: 'higher',
  },
  cpuMicros: { title: 'CPU per request', unit: 'µs', format: measured, better: 'lower' },
  cpuMicrosQuartile: {
    title: 'Lower quartile of CPU per request',
    heading: 'lower quartile, µs',
    unit: 'µs',
    format: measured,
    better: 'lower',
  },
  cpuMicrosLeast: {
    title: 'Least CPU per request',
    heading: 'least, µs',
    unit: 'µs',
    format: measured,
    better: 'lower',
  },
  cpuUserMicros: { title: 'User time per request', unit: 'µs', format: measured, better: 'lower' },
  cpuSystemMicros: {
    title: 'System time per request',
    unit: 'µs',
    format: measured,
    better: 'lower',
  },
  databaseMicros: {
    title: 'CPU of the database per request',
    unit: 'µs',
    format: measured,
    better: 'lower',
  },
  cpuRatio: { title: '× nestjs-cluster', format: measured, better: 'lower' },
  cpuRatioQuartile: {
    title: '× nestjs-cluster, lower quartile',
    format: measured,
    better: 'lower',
  },
  cpuRatioLeast: { title: '× nestjs-cluster, least', format: measured, better: 'lower' },
  cpuRatioOfLeast: { title: 'least × least', format: measured, better: 'lower' },
  difference: { title: 'Difference', format: difference, better: 'lower' },
  latencyMeanMs: milliseconds('Mean latency', 'mean'),
  p50Ms: milliseconds('Median latency', 'p50'),
  p99Ms: milliseconds('99th percentile of latency', 'p99'),
  maxMs: milliseconds('Longest latency', 'max'),
  lightP50Ms: milliseconds('Median latency of the light route', 'light p50'),
  lightP99Ms: milliseconds('99th percentile of the light route', 'light p99'),
  lightMaxMs: milliseconds('Longest latency of the light route', 'light max'),
  lightUnanswered: {
    title: 'Light requests without an answer',
    heading: 'Light unanswered',
    format: counted,
    better: 'lower',
  },
  totalMs: milliseconds('Total time', 'Total'),
  longestMs: milliseconds('Longest request', 'Longest'),
  requests: { title: 'Requests', format: counted },
  answered: { title: 'Answered', format: counted, better: 'higher' },
  asked: { title: 'Requests sent', heading: 'Sent', format: counted, combined: 'sum' },
  lost: {
    title: 'Requests lost',
    heading: 'Lost',
    format: counted,
    combined: 'sum',
    better: 'lower',
  },
  lostMost: {
    title: 'Most lost in one event',
    heading: 'Most lost at once',
    format: counted,
    combined: 'most',
    better: 'lower',
  },
  lostOtherwise: {
    title: 'Lost, though no killed worker had them',
    heading: 'Lost otherwise',
    format: counted,
    better: 'lower',
  },
  kills: { title: 'Kills', format: counted },
  reloads: { title: 'Reloads', format: counted },
  inFlight: {
    title: 'Most in flight at an event',
    heading: 'In flight',
    format: counted,
    combined: 'most',
  },
  timeouts: { title: 'Timeouts', format: counted, better: 'lower' },
  refused: { title: 'Refused', format: counted, better: 'lower' },
  errors: { title: 'Errors', format: errorsByKind },
  readyMs: milliseconds('Time to the first answer', 'First answer'),
  allReadyMs: milliseconds('Time until every worker answers', 'All ready'),
  recoveryMs: milliseconds('Time to recover', 'Recovery'),
  failedProbes: { title: 'Failed probes', format: counted, better: 'lower' },
  replaced: { title: 'Replaced', format: yesOrNo },
  reloadMs: milliseconds('Duration of a reload', 'A reload'),
  scaleMs: milliseconds('Duration of a change of scale', 'A change of scale'),
  busiestRatio: {
    title: 'Busiest worker, as a multiple of the mean',
    heading: 'Busiest worker × mean',
    format: measured,
    better: 'lower',
  },
  busiestWorst: {
    title: 'Busiest worker over the mean, worst round',
    heading: 'Busiest × mean, worst round',
    format: measured,
    better: 'lower',
  },
  ratio: { title: 'Ratio', format: measured },
  primaryCpuShare: {
    title: "Primary's share of the CPU time",
    heading: "Primary's share of CPU, %",
    unit: '%',
    format: percent,
    better: 'lower',
  },
  frontRssBytes: {
    title: 'RSS of primary, daemon or proxy',
    heading: 'RSS of primary or proxy, MB',
    unit: 'MB',
    format: megabytes,
    better: 'lower',
  },
  frontHeapBytes: {
    title: 'JavaScript heap of the primary',
    unit: 'MB',
    format: megabytes,
    better: 'lower',
  },
  frontDescriptors: {
    title: 'Open descriptors of the primary',
    format: counted,
    better: 'lower',
  },
  workerRssBytes: { title: 'RSS of a worker', unit: 'MB', format: megabytes, better: 'lower' },
  idleFrontRssBytes: {
    title: 'RSS of an idle primary, daemon or proxy',
    heading: 'RSS of an idle primary or proxy, MB',
    unit: 'MB',
    format: megabytes,
    better: 'lower',
  },
  idleTotalRssBytes: { title: 'RSS in all, idle', unit: 'MB', format: megabytes, better: 'lower' },
  idleWorkerRssBytes: {
    title: 'RSS of an idle worker',
    unit: 'MB',
    format: megabytes,
    better: 'lower',
  },
  totalRssBytes: { title: 'RSS in all', unit: 'MB', format: megabytes, better: 'lower' },
};

/** @type {import('./types.d.mts').Column[]} */
export const COLUMNS = Object.entries(METRICS).map(([key, { heading, unit = '', ...rest }]) => ({
  key,
  unit,
  heading: heading ?? (unit === '' ? rest.title : `${rest.title}, ${unit}`),
  ...rest,
}));

/**
 * The column of a metric; one that nobody has listed is shown as a plain number.
 *
 * @param {string} key
 * @returns {import('./types.d.mts').Column}
 */
export function columnOf(key) {
  return (
    COLUMNS.find((column) => column.key === key) ?? {
      key,
      title: key,
      heading: key,
      unit: '',
      format: measured,
    }
  );
}

/**
 * The columns of which some row has a value.
 *
 * @param {import('./types.d.mts').Row[]} rows
 * @returns {import('./types.d.mts').Column[]}
 */
export function columnsOf(rows) {
  return COLUMNS.filter(({ key }) => rows.some((row) => hasMetric(row, key)));
}

export function hasMetric(row, key) {
  return row.notRun === undefined && row[key] !== undefined && row[key] !== null;
}

/** "22.3 µs", "18,606/s", "1.02" */
export function withUnit(value, { format, unit }) {
  const text = format(value);
  if (unit === '') return text;
  return unit.startsWith('/') ? `${text}${unit}` : `${text} ${unit}`;
}

function milliseconds(title, short) {
  return { title, heading: `${short}, ms`, unit: 'ms', format: measured, better: 'lower' };
}
