import { columnOf, columnsOf, hasMetric } from './columns.mjs';
import { measured, NOTHING } from './format.mjs';
import { defaultRow, groupsOf, spreadOf } from './groups.mjs';

/**
 * The tables of one scope as data, one for each group: `{ caption, head, align, rows }`,
 * where a row is `{ ours, cells }` and a cell `{ text, spread }`.
 *
 * @param {import('./types.d.mts').Result} result
 * @returns {import('./types.d.mts').Table[]}
 */
export function resultTables(result) {
  return groupsOf(result).map(({ name, rows }) => {
    const columns = withRatio(columnsOf(rows), result, rows).map((column) =>
      comparedWith(column, result),
    );
    const spreadKeys = new Set(['cpuMicros', result.chart?.metric]);
    return {
      caption: name,
      head: ['', ...columns.map(({ heading }) => heading)],
      align: ['l', ...columns.map(({ key }) => (key === 'errors' ? 'l' : 'r'))],
      rows: rows.map((row) => ({
        ours: row.ours === true,
        cells: [
          { text: row.notRun === undefined ? row.label : `${row.label}, not run: ${row.notRun}` },
          ...columns.map((column) => cellOf(row, column, spreadKeys)),
        ],
      })),
    };
  });
}

function cellOf(row, { key, format, over }, spreadKeys) {
  if (row.notRun !== undefined) return { text: '' };
  if (!hasMetric(row, key)) return { text: NOTHING };
  if (over !== undefined) return { text: format(row[key] / over) };
  const text = format(row[key]);
  // Windows have their least in a column of its own.
  const spread = spreadKeys.has(key) && !row.windows ? spreadOf(row, key) : undefined;
  if (spread === undefined) return { text };
  const [least, most] = [format(spread.least), format(spread.most)];
  return least === most ? { text } : { text, spread: `${least}–${most}` };
}

/** The ratios of a scope that names its baseline are to that. */
function comparedWith(column, { baseline }) {
  if (baseline === undefined || !column.heading.startsWith('×')) return column;
  return { ...column, heading: column.heading.replace('nestjs-cluster', baseline) };
}

/** `cpuRatio` compares CPU; where the scope is about something else, that is compared as well. */
function withRatio(columns, { chart }, rows) {
  const ours = defaultRow(rows);
  const metric = chart?.metric;
  if (metric === 'cpuMicros' || !(ours?.[metric] > 0)) return columns;
  const ratio = {
    key: metric,
    heading: columnOf('cpuRatio').heading,
    format: measured,
    over: ours[metric],
  };
  return columns.flatMap((column) => (column.key === metric ? [column, ratio] : [column]));
}

/**
 * The findings of an article next to the new measurements; undefined for a scope without article.
 *
 * @param {import('./types.d.mts').Result} result
 * @returns {import('./types.d.mts').Table | undefined}
 */
export function foundTable({ found = [] }) {
  if (found.length === 0) return undefined;
  return {
    caption: 'What the article found',
    head: ['article', 'the article found', 'measured now'],
    align: ['l', 'l', 'l'],
    rows: found.map(({ article, said, measured: now }) => ({
      ours: false,
      cells: [{ text: article }, { text: said }, { text: now }],
    })),
  };
}

/**
 * All tables of a scope.
 *
 * @param {import('./types.d.mts').Result} result
 * @returns {import('./types.d.mts').Table[]}
 */
export function tablesOf(result) {
  return [...resultTables(result), foundTable(result)].filter((table) => table !== undefined);
}
