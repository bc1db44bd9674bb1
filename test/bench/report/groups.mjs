import { columnOf } from './columns.mjs';
import { quantile } from '../statistics.mjs';

/** The system that everything is compared with. */
const DEFAULT_SYSTEM = 'nestjs-cluster';

/**
 * The rows of a result by group (Express, Fastify), in their order: `[{ name, rows }]`.
 *
 * @param {{ rows: import('./types.d.mts').Row[] }} result
 */
export function groupsOf({ rows }) {
  const names = [...new Set(rows.map(({ group }) => group))]; // Map.groupBy needs Node 21
  return names.map((name) => ({ name, rows: rows.filter(({ group }) => group === name) }));
}

/**
 * The row of nestjs-cluster as it is by default, the first of its rows, if it was run.
 *
 * @param {import('./types.d.mts').Row[]} rows
 */
export function defaultRow(rows) {
  return rows.find(({ system, notRun }) => system === DEFAULT_SYSTEM && notRun === undefined);
}

/**
 * The least and the largest value that the rounds of a row measured. For windows the upper quartile
 * instead of the largest, because some are always disturbed. Undefined if there are fewer than two,
 * and if the figure is not a median.
 *
 * @param {import('./types.d.mts').Row} row
 * @param {string} key
 */
export function spreadOf({ rounds = [], windows }, key) {
  if (columnOf(key).combined !== undefined) return undefined;
  const counted = windows?.filter(({ counts }) => counts) ?? rounds;
  const values = counted.map((each) => each[key]).filter(Number.isFinite);
  if (values.length < 2) return undefined;
  return { least: Math.min(...values), most: quantile(values, windows ? 0.75 : 1) };
}
