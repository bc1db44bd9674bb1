export const METRIC_TYPES = ['counter', 'gauge', 'histogram', 'summary'] as const;
export type MetricType = (typeof METRIC_TYPES)[number];

/** The suffix and the additional label of a sample: `{ suffix: '_bucket', label: 'le="0.1"' }`; both are empty for a plain value. */
export interface Column {
  readonly suffix: string;
  readonly label: string;
}

/** One value a column, in their order; `null` where this series has none. */
export type Row = (number | null)[];

/**
 * A metric with all its series. Labels are kept as the text that stands on the
 * page (`method="GET",route="/"`, without braces): it identifies the
 * series everywhere, and nobody has to build it again.
 */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  /** How the values of several workers become one: prom-client's names. */
  readonly aggregator: string;
  readonly columns: readonly Column[];
  readonly series: ReadonlyMap<string, Row>;
}

export type Labels = Readonly<Record<string, string | number>>;

/** The one column of counters and gauges. */
export const PLAIN: readonly Column[] = [{ suffix: '', label: '' }];

/** The columns of a histogram with these upper bounds; `+Inf` is added. */
export function histogramColumns(bounds: readonly number[]): Column[] {
  return [
    ...[...bounds, '+Inf'].map((bound) => ({ suffix: '_bucket', label: `le="${bound}"` })),
    { suffix: '_sum', label: '' },
    { suffix: '_count', label: '' },
  ];
}

/** A counter or gauge of these values. */
export function plainFamily(
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  values: readonly (readonly [Labels, number])[],
): MetricFamily {
  const series = new Map(values.map(([labels, value]) => [labelText(labels), [value]]));
  return { name, help, type, aggregator: 'sum', columns: PLAIN, series };
}

/** Labels as they stand on the page, in the order in which they are given. */
export function labelText(labels: Labels): string {
  return joinLabels(labels, Object.keys(labels));
}

/** Labels as on the page, but sorted by name: the text is the same for the same labels in any order. */
export function sortedLabelText(labels: Labels): string {
  return joinLabels(labels, Object.keys(labels).sort());
}

function joinLabels(labels: Labels, names: readonly string[]): string {
  let text = '';
  for (const name of names) text += `${text && ','}${name}="${escaped(String(labels[name]))}"`;
  return text;
}

function escaped(value: string): string {
  return /[\\"\n]/.test(value)
    ? value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
    : value;
}
