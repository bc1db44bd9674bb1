import { quantile } from '../statistics.mjs';
import { COLUMNS, columnOf, hasMetric, NOTHING, textOf } from './metrics.mjs';

/** The system that everything is compared with. */
export const DEFAULT_SYSTEM = 'nestjs-cluster';

/** A table in Markdown, padded for a terminal if `wide`; the cells of the first column are text. */
export function markdownTable(head, rows, { wide = false } = {}) {
  const escaped = [head, ...rows].map((cells) =>
    cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')),
  );
  const widths = head.map((_, k) => (wide ? Math.max(...escaped.map((row) => row[k].length)) : 0));
  const line = (cells) =>
    `| ${cells.map((cell, k) => (k === 0 ? cell.padEnd(widths[k]) : cell.padStart(widths[k]))).join(' | ')} |`;
  const rule = `| ${head.map((_, k) => (k === 0 ? ':-' : '-:')).join(' | ')} |`;
  return [line(escaped[0]), rule, ...escaped.slice(1).map(line)].join('\n');
}

/**
 * The rows of a result by group (Express, Fastify), in their order.
 *
 * @param {Record<string, any>[]} rows
 */
export function groupsOf(rows) {
  const names = [...new Set(rows.map(({ group }) => group))]; // Map.groupBy needs Node 21
  return names.map((name) => ({ name, rows: rows.filter(({ group }) => group === name) }));
}

/** The row of nestjs-cluster as it is by default, if it was run. */
export function defaultRow(rows) {
  return rows.find(({ system, notRun }) => system === DEFAULT_SYSTEM && notRun === undefined);
}

/**
 * The tables of a scope in Markdown: one for each group, then what an article found.
 *
 * @param {Record<string, any>} result
 * @returns {string[]}
 */
export function tablesOf(result, options = {}) {
  const { rows, said, metric, baseline = DEFAULT_SYSTEM } = result;
  const tables = groupsOf(rows).map(({ name, rows: own }) => {
    const columns = COLUMNS.filter(({ key }) => own.some((row) => hasMetric(row, key)));
    const ours = defaultRow(own)?.[metric];
    // `cpuRatio` compares CPU; where the scope is about something else, that is compared as well.
    const compares = metric !== 'cpuMicros' && ours > 0;
    const cellsOf = (row, { key }) => {
      const ratio = compares && key === metric;
      if (row.notRun !== undefined) return ratio ? ['', ''] : [''];
      const text = `${textOf(row, key)}${spreadOf(row, key, metric)}`;
      if (!ratio) return [text];
      return [text, hasMetric(row, key) ? columnOf('cpuRatio').format(row[key] / ours) : NOTHING];
    };
    const head = columns.flatMap(({ key, heading }) => [
      heading.replace(`× ${DEFAULT_SYSTEM}`, `× ${baseline}`),
      ...(compares && key === metric ? [`× ${baseline}`] : []),
    ]);
    const table = markdownTable(
      ['', ...head],
      own.map((row) => [
        row.notRun === undefined ? row.label : `${row.label}, not run: ${row.notRun}`,
        ...columns.flatMap((column) => cellsOf(row, column)),
      ]),
      options,
    );
    return name ? `### ${name}\n\n${table}` : table;
  });
  return said ? [...tables, `The article: ${said}`] : tables;
}

/** " (21.9–23.0)": the least and the most of the rounds. Windows have their least in a column of its own. */
function spreadOf({ rounds = [] }, key, metric) {
  const { format, combined } = columnOf(key);
  if ((key !== 'cpuMicros' && key !== metric) || combined !== undefined) return '';
  const values = rounds.map((round) => round[key]).filter(Number.isFinite);
  if (values.length < 2) return '';
  const [least, most] = [0, 1].map((share) => format(quantile(values, share)));
  return least === most ? '' : ` (${least}–${most})`;
}
