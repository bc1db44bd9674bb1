import { alignRow, indexOf, sameColumns, unionColumns } from './columns.js';
import { Cell, type Rule } from './merged-cell.js';
import type { Column, MetricFamily, Row } from './metric-family.js';
import type { SeriesLimit } from './series-limit.js';

/** prom-client's aggregators. */
const RULES: ReadonlyMap<string, Rule> = new Map<string, Rule>([
  ['sum', 'sum'],
  ['first', 'first'],
  ['min', 'min'],
  ['max', 'max'],
  ['average', 'mean'],
]);

/** One family, merged step by step from the families of several workers. */
export class MergedFamily {
  #columns: readonly Column[];
  readonly #series = new Map<string, Cell[]>();

  constructor(
    private readonly meta: MetricFamily,
    private readonly limit: SeriesLimit,
  ) {
    this.#columns = meta.columns;
  }

  /** @param retired its worker is gone: what does not accumulate went with it. */
  add(family: MetricFamily, retired: boolean): void {
    const { type, aggregator } = this.meta;
    // Two releases declare the metric differently: their values cannot be added.
    if (family.type !== type || family.aggregator !== aggregator) return;
    if (!sameColumns(family.columns, this.#columns)) this.#widen(family.columns);
    const columns = this.#columns;
    const align = !sameColumns(family.columns, columns);
    const rules = this.#rules;
    for (const [labels, values] of family.series) {
      let cells = this.#series.get(labels);
      if (cells === undefined) {
        if (this.#series.size >= this.limit.maxSeries) {
          this.limit.dropped(family.name, values.length);
          continue;
        }
        this.#series.set(labels, (cells = columns.map(() => new Cell())));
      }
      const row = align ? alignRow(values, family.columns, columns) : values;
      for (let i = 0; i < rules.length; i++) {
        const value = row[i] ?? null;
        if (value !== null && !(retired && rules[i] !== 'total')) cells[i]!.add(rules[i]!, value);
      }
    }
  }

  /** As it is shown. */
  shown(): MetricFamily {
    const rules = this.#rules;
    return this.#familyOf((cells) => cells.map((cell, i) => cell.shown(rules[i]!)));
  }

  /** As it is merged on. */
  family(): MetricFamily {
    const rules = this.#rules;
    return this.#familyOf((cells) => cells.map((cell, i) => cell.value(rules[i]!)));
  }

  /** The part of sums that {@link family} leaves out because a number cannot hold it; `undefined` if it leaves nothing out. */
  residue(): MetricFamily | undefined {
    const family = this.#familyOf((cells) => cells.map((cell) => cell.residue()));
    const series = [...family.series].filter(([, row]) => row.some((value) => value !== 0));
    return series.length === 0 ? undefined : { ...family, series: new Map(series) };
  }

  #familyOf(toRow: (cells: readonly Cell[]) => Row): MetricFamily {
    const series = new Map<string, Row>();
    for (const [labels, cells] of this.#series) series.set(labels, toRow(cells));
    return { ...this.meta, columns: this.#columns, series };
  }

  /** The rule of each column. */
  get #rules(): readonly Rule[] {
    return this.#columns.map((column) => this.#ruleOf(column));
  }

  #ruleOf({ suffix }: Column): Rule {
    const { type, aggregator } = this.meta;
    // Quantiles of several workers cannot be added; their mean is the least wrong.
    if (type === 'summary' && suffix === '') return 'mean';
    if (type !== 'gauge' && aggregator === 'sum') return 'total';
    return RULES.get(aggregator) ?? 'sum';
  }

  /** Another release has other buckets or quantiles. */
  #widen(columns: readonly Column[]): void {
    const union = unionColumns(this.#columns, columns);
    const rules = this.#rules;
    for (const [labels, cells] of this.#series) {
      const row = cells.map((cell, i) => cell.value(rules[i]!));
      const aligned = alignRow(row, this.#columns, union);
      this.#series.set(
        labels,
        union.map((column, i) => {
          const at = indexOf(column, this.#columns);
          if (at !== -1) return cells[at]!;
          const cell = new Cell();
          if (aligned[i] !== null) cell.add(this.#ruleOf(column), aligned[i]!);
          return cell;
        }),
      );
    }
    this.#columns = union;
  }
}
