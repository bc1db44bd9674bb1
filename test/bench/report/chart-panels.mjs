import { columnOf, hasMetric, withUnit } from './columns.mjs';
import { groupsOf, spreadOf } from './groups.mjs';

/**
 * The chart of a scope as data: a panel for each group with its bars, best first, and the range of
 * values that all panels share. Undefined if no row has the metric.
 *
 * @param {import('./types.d.mts').Result} result
 * @returns {import('./types.d.mts').Panels | undefined}
 */
export function chartPanels(result) {
  const { chart } = result;
  if (chart === undefined) return undefined;
  const { metric, better } = chart;
  const column = { ...columnOf(metric), unit: columnOf(metric).unit || unitOf(chart) };
  const panels = groupsOf(result)
    .map(({ name, rows }) => ({
      name,
      bars: rows
        .filter((row) => hasMetric(row, metric) && Number.isFinite(row[metric]))
        .toSorted((a, b) => (better === 'lower' ? 1 : -1) * (a[metric] - b[metric]))
        .map((row) => ({
          label: row.label,
          ours: row.ours === true,
          value: row[metric],
          text: withUnit(row[metric], column),
          ...spreadOf(row, metric),
        })),
    }))
    .filter(({ bars }) => bars.length > 0);
  if (panels.length === 0) return undefined;
  const bars = panels.flatMap((panel) => panel.bars);
  // A logarithmic scale of nothing but zeros has no beginning.
  const log = chart.log === true && bars.some(({ value, most = value }) => most > 0);
  return { panels, range: log ? decades(bars) : fromZero(bars), log, column };
}

/**
 * The line below the title: unit, which way is better, the scale, what the thin lines are.
 *
 * @param {import('./types.d.mts').Result} result
 * @param {import('./types.d.mts').Panels} chart
 */
export function chartSubtitle({ chart, parameters }, { panels, column, log }) {
  const spread = panels.some(({ bars }) => bars.some(({ least }) => least !== undefined));
  return [
    `${/^[^/]/.test(column.unit) ? `${column.unit}, ` : ''}${chart.better} is better`,
    log && 'logarithmic scale',
    column.combined === 'sum' && parameters?.rounds > 1 && `sum of ${parameters.rounds} rounds`,
    spread && describeSpread(parameters),
  ]
    .filter(Boolean)
    .join('; ');
}

function describeSpread({ rounds, starts, windows } = {}) {
  return windows === undefined
    ? `median of ${rounds ?? 'the'} rounds, the thin line is from the least to the most`
    : `median of ${starts * windows} windows, the thin line is from the least to the upper quartile`;
}

/** Only short units stand behind a number; "requests lost" belongs into the title. */
function unitOf({ unit = '' }) {
  return unit.length <= 3 ? unit : '';
}

function fromZero(bars) {
  return { min: 0, max: Math.max(...bars.map(({ value, most = value }) => most)) || 1 };
}

/** Whole decades below; what is zero has no bar. */
function decades(bars) {
  const seen = bars.flatMap(({ value, least = value, most = value }) => [value, least, most]);
  const positive = seen.filter((value) => value > 0);
  const lowest = Math.min(...positive);
  // Half a decade of bar for the least of them, or its length could be nothing.
  const min = 10 ** Math.floor(Math.log10(lowest / 2));
  return { min, max: Math.max(...positive) };
}
