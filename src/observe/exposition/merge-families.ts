import { alignRow, sameColumns, unionColumns } from './columns.js';
import { Cell, type Rule } from './merged-cell.js';
import type { Column, MetricFamily } from './metric-family.js';
import type { SeriesLimit } from './series-limit.js';

/** prom-client's aggregator for metrics that cannot be merged over several processes. */
const OMIT = 'omit';

/** The rule for each aggregator of prom-client. */
const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['sum', 'sum'],
  ['first', 'first'],
  ['min', 'min'],
  ['max', 'max'],
  ['average', 'mean'],
]);

type Body = readonly MetricFamily[];

/** All families with the same name. */
interface Group {
  /** The family that decides how the group is merged and shown. */
  readonly meta: MetricFamily;
  readonly retired: MetricFamily[];
  readonly live: MetricFamily[];
}

interface MergedFamily extends Pick<Group, 'meta'> {
  readonly columns: readonly Column[];
  readonly series: ReadonlyMap<string, readonly Cell[]>;
}

/**
 * Merges the metrics of several workers. Counters, histograms and the sum and count of a summary
 * include ended workers, so they never fall. A gauge includes only living workers.
 */
export function mergeFamilies(
  live: readonly Body[],
  retired: readonly Body[],
  limit: SeriesLimit,
): MetricFamily[] {
  return groupsOf(live, retired).map((group) => {
    const merged = merge(group, limit);
    return familyOf(merged, (cell) => cell.shown());
  });
}

/** Merges the metrics of ended workers without losing digits of totals, because the result is merged again. */
export function foldFamilies(retired: readonly Body[], limit: SeriesLimit): MetricFamily[] {
  return groupsOf([], retired).flatMap((group) => {
    const merged = merge(group, limit);
    const residue = familyOf(merged, (cell) => cell.residue());
    const rest = [...residue.series].filter(([, row]) => row.some((value) => value !== 0));
    const total = familyOf(merged, (cell) => cell.value());
    return rest.length === 0 ? [total] : [total, { ...residue, series: new Map(rest) }];
  });
}

function groupsOf(live: readonly Body[], retired: readonly Body[]): Group[] {
  const ended = retired.map((families) => families.filter(doesAccumulate));
  const groups = new Map<string, Group>();
  // The living workers decide the type of a metric, because a new release may have changed the
  // type. Without living workers, the worker that ended last decides.
  const declaring = [
    ...live.flat().filter(({ aggregator }) => aggregator !== OMIT),
    ...ended.toReversed().flat(),
  ];
  for (const meta of declaring) {
    if (!groups.has(meta.name)) groups.set(meta.name, { meta, retired: [], live: [] });
  }
  // If two releases declare a metric differently, their values cannot be added.
  const groupOf = ({ name, type, aggregator }: MetricFamily): Group | undefined => {
    const group = groups.get(name);
    return group?.meta.type === type && group.meta.aggregator === aggregator ? group : undefined;
  };
  for (const family of ended.flat()) groupOf(family)?.retired.push(family);
  for (const family of live.flat()) groupOf(family)?.live.push(family);
  return [...groups.values()];
}

/** Whether the family's values only grow. Totals then include the values of ended workers. */
function doesAccumulate({ type, aggregator }: MetricFamily): boolean {
  return type !== 'gauge' && aggregator === 'sum';
}

function merge({ meta, retired, live }: Group, limit: SeriesLimit): MergedFamily {
  // Takes the columns of all families, because another release may have other buckets or quantiles.
  const columns = [...retired, ...live].reduce<readonly Column[]>(
    (all, family) => (sameColumns(all, family.columns) ? all : unionColumns(all, family.columns)),
    meta.columns,
  );
  const rules = columns.map((column) => ruleOf(meta, column));
  const series = new Map<string, Cell[]>();
  const add = (family: MetricFamily, takes: (rule: Rule) => boolean): void => {
    const align = !sameColumns(family.columns, columns);
    for (const [labels, values] of family.series) {
      let cells = series.get(labels);
      if (cells === undefined) {
        if (series.size >= limit.maxSeries) {
          limit.dropped(family.name, values.length);
          continue;
        }
        series.set(labels, (cells = rules.map((rule) => new Cell(rule))));
      }
      const row = align ? alignRow(values, family.columns, columns) : values;
      for (let i = 0; i < rules.length; i++) {
        const value = row[i] ?? null;
        if (value !== null && takes(rules[i]!)) cells[i]!.add(value);
      }
    }
  };
  // Ended workers first: if there are too many series, the older series stay.
  for (const family of retired) add(family, (rule) => rule === 'total');
  for (const family of live) add(family, () => true);
  return { meta, columns, series };
}

function ruleOf({ type, aggregator }: MetricFamily, { suffix }: Column): Rule {
  // Quantiles of several workers cannot be added. Their mean is the best approximation.
  if (type === 'summary' && suffix === '') return 'mean';
  if (type !== 'gauge' && aggregator === 'sum') return 'total';
  return RULES.get(aggregator) ?? 'sum';
}

function familyOf(
  { meta, columns, series }: MergedFamily,
  read: (cell: Cell) => number | null,
): MetricFamily {
  const rows = [...series].map(([labels, cells]) => [labels, cells.map(read)] as const);
  return { ...meta, columns, series: new Map(rows) };
}
