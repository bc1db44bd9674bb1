import { columnOf, hasMetric } from './columns.mjs';

/** "31.8<!-- fig keep-alive Express nestjs-cluster cpuMicros -->": scope, group with "_" for each space, system, metric. */
const FIGURE = /[\d.,]*(<!-- fig (\S+) (\S+) (\S+) (\w+) -->)/g;

/**
 * A page with each marked figure as it was measured last, in the unit of its metric.
 *
 * @param {string} page
 * @param {import('./types.d.mts').Result[]} results
 */
export function fillFigures(page, results) {
  return page.replace(FIGURE, (_, marker, scope, group, system, metric) => {
    const row = resultOf(results, scope)?.rows.find(
      (each) => each.group.replaceAll(' ', '_') === group && each.system === system,
    );
    if (row === undefined || !hasMetric(row, metric)) {
      throw new Error(`A page has the figure ${scope} ${group} ${system} ${metric}: no run has it`);
    }
    return `${columnOf(metric).format(row[metric])}${marker}`;
  });
}

/** The result of a scope. Before `memory` has been run, keep-alive tells the memory under its load. */
export function resultOf(results, scope) {
  return (
    results.find((result) => result.scope === scope) ??
    (scope === 'memory' ? resultOf(results, 'keep-alive') : undefined)
  );
}
