import { columnOf, hasMetric, withUnit } from './columns.mjs';
import { defaultRow, groupsOf } from './groups.mjs';

/** What another system is compared in. */
const MAIN_METRICS = [
  'cpuMicros',
  'requestsPerSecond',
  'p99Ms',
  'lost',
  'lightP99Ms',
  'busiestRatio',
  'frontRssBytes',
  'workerRssBytes',
];
/** Less is noise, even of medians. */
const NOTICEABLE_RATIO = 0.03;
/** Other scopes show memory too; where this one was run, it is the comparison. */
const MEMORY_SCOPE = 'memory';
const MEMORY_METRICS = ['frontRssBytes', 'workerRssBytes'];

/**
 * Every value of another system that is better than that of nestjs-cluster's default.
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
  const systems = new Set(results.flatMap(({ rows }) => rows.map(({ system }) => system)));
  return [...systems]
    .map((system) => ahead.filter((comparison) => comparison.system === system))
    .filter((ofSystem) => ofSystem.length > 0)
    .map((ofSystem) => {
      const metrics = MAIN_METRICS.flatMap((metric) => {
        const found = ofSystem.filter((comparison) => comparison.metric === metric);
        return found.length === 0 ? [] : [`  - ${sentence(metric, found)}`];
      });
      return [`- **${ofSystem[0].label}**`, ...metrics].join('\n');
    })
    .join('\n');
}

/** "CPU per request, 4 to 6 % lower: Keep-alive (Express 21.2 against 22.3 µs), …." */
function sentence(metric, found) {
  const column = columnOf(metric);
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
