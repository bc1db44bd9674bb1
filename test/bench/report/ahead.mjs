import { columnOf, hasMetric, withUnit } from './columns.mjs';
import { resultOf } from './figures.mjs';
import { defaultRow, groupsOf } from './groups.mjs';

/** The metrics in which another system can be ahead. A rerun changes the order of p99Ms, so it is none. */
const MAIN_METRICS = [
  'cpuMicros',
  'requestsPerSecond',
  'heavyPerSecond',
  'lost',
  'lightP99Ms',
  'readyMs',
  'allReadyMs',
  'reloadMs',
  'recoveryMs',
  'busiestRatio',
  'frontRssBytes',
  'idleFrontRssBytes',
  'workerRssBytes',
  'idleWorkerRssBytes',
  'totalRssBytes',
  'idleTotalRssBytes',
];
/** Minimum difference that is reported. Even medians differ by less because of noise. */
const NOTICEABLE_RATIO = 0.03;
/** Maximum number of lines in the summary. */
const MAX_LINES = 10;
/** Other scopes show memory too. If this scope was run, memory is compared only here. */
const MEMORY_SCOPE = 'memory';
const MEMORY_METRICS = MAIN_METRICS.filter((metric) => metric.endsWith('RssBytes'));

/**
 * Every value of another system that is better than nestjs-cluster's with its defaults.
 *
 * @param {import('./types.d.mts').Result[]} results
 * @returns {import('./types.d.mts').Ahead[]}
 */
export function aheadOf(results) {
  const memoryIsMeasured = results.some(({ scope }) => scope === MEMORY_SCOPE);
  return results.flatMap((result) => {
    const metrics = MAIN_METRICS.filter(
      (metric) =>
        !memoryIsMeasured || result.scope === MEMORY_SCOPE || !MEMORY_METRICS.includes(metric),
    );
    return aheadInScope(result, metrics);
  });
}

function aheadInScope(result, metrics) {
  return groupsOf(result).flatMap(({ name: group, rows }) => {
    const ours = defaultRow(rows);
    if (ours === undefined) return [];
    return rows
      .filter((row) => !row.ours)
      .flatMap((row) =>
        metrics
          .filter((metric) => isBetter(row, ours, metric))
          .map((metric) => ({
            system: row.system,
            label: row.label,
            metric,
            title: result.title,
            group,
            value: row[metric],
            ours: ours[metric],
          })),
      );
  });
}

function isBetter(row, ours, metric) {
  if (!hasMetric(row, metric) || !hasMetric(ours, metric)) return false;
  if (metric === 'cpuMicros') {
    // In a comparison by windows, medians alone are not enough: `difference` decides.
    if (ours.isBaseline && row.difference !== undefined) return row.difference < 0;
    if (row.isBaseline && ours.difference !== undefined) return ours.difference > 0;
  }
  return columnOf(metric).better === 'lower'
    ? row[metric] < ours[metric] * (1 - NOTICEABLE_RATIO)
    : row[metric] > ours[metric] * (1 + NOTICEABLE_RATIO);
}

/**
 * A list in Markdown: by system, then by metric, with both values of each comparison.
 *
 * @param {import('./types.d.mts').Result[]} results
 */
export function aheadList(results) {
  const ahead = aheadOf(results);
  if (ahead.length === 0) return 'Nowhere, in these measurements.';
  return bySystem(ahead)
    .map((ofSystem) => {
      const metrics = byMetric(ofSystem).map((found) => `  - ${sentence(found)}`);
      return [`- **${ofSystem[0].label}**`, ...metrics].join('\n');
    })
    .join('\n');
}

/**
 * The same in a line for each system, of some figures alone: none is told twice.
 *
 * @param {import('./types.d.mts').Result[]} results
 * @param {{ scope: string, metric: string }[]} figures
 */
export function aheadSummary(results, figures) {
  const shown = figures.flatMap(({ scope, metric }) => {
    const result = resultOf(results, scope);
    return result === undefined ? [] : aheadInScope(result, [metric]);
  });
  if (shown.length === 0) return 'Nowhere, in these figures.';
  const lines = bySystem(shown).map(
    (ofSystem) => `- **${ofSystem[0].label}**: ${byMetric(ofSystem).map(inShort).join(', ')}.`,
  );
  const more = lines.length - MAX_LINES;
  if (more > 0) lines.splice(MAX_LINES - 1, more + 1, `- and ${more + 1} other systems.`);
  return lines.join('\n');
}

function bySystem(ahead) {
  return by(ahead, 'system');
}

function byMetric(ofSystem) {
  return by(ofSystem, 'metric').toSorted(
    ([a], [b]) => MAIN_METRICS.indexOf(a.metric) - MAIN_METRICS.indexOf(b.metric),
  );
}

/** "CPU per request 4 to 6 % lower" */
function inShort(found) {
  const { title, better } = columnOf(found[0].metric);
  return `${title} ${differences(found)} ${better}`;
}

/** "CPU per request, 4 to 6 % lower: Keep-alive (Express 21.2 against 22.3 µs), …." */
function sentence(found) {
  const column = columnOf(found[0].metric);
  const where = by(found, 'title').map(
    (inScope) =>
      `${inScope[0].title} (${inScope
        .map(
          ({ group, value, ours }) =>
            `${group ? `${group} ` : ''}${column.format(value)} against ${withUnit(ours, column)}`,
        )
        .join(', ')})`,
  );
  return `${column.title}, ${differences(found)} ${column.better}: ${where.join('; ')}.`;
}

function differences(found) {
  // 99.96 % less is not nothing: only zero is 100 % lower.
  const percents = found.map(({ value, ours }) => {
    const percent = Math.abs(value / ours - 1) * 100;
    return percent > 99 && percent < 100 ? 99 : Math.round(percent);
  });
  const [least, most] = [Math.min(...percents), Math.max(...percents)];
  return least === most ? `${least} %` : `${least} to ${most} %`;
}

/** The items grouped by a key, in the order in which each was first seen. */
function by(items, key) {
  return [...new Set(items.map((item) => item[key]))].map((value) =>
    items.filter((item) => item[key] === value),
  );
}
