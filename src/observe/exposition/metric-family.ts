export const METRIC_TYPES = ['counter', 'gauge', 'histogram', 'summary'] as const;
export type MetricType = (typeof METRIC_TYPES)[number];

/** Suffix and extra label of a sample: `{ suffix: '_bucket', label: 'le="0.1"' }`. Both are empty for a plain value. */
export interface Column {
  readonly suffix: string;
  readonly label: string;
}

/** The values of a series in the order of the columns; `null` if the series has no value in a column. */
export type Row = (number | null)[];

/**
 * A metric with all its series. The labels of a series are kept as text in the format of the page
 * (`method="GET",route="/"`, without braces). The text identifies the series and is built once.
 */
export interface MetricFamily {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  /** How the values of several workers are merged: the name of an aggregator of prom-client. */
  readonly aggregator: string;
  readonly columns: readonly Column[];
  readonly series: ReadonlyMap<string, Row>;
}

export type Labels = Readonly<Record<string, string | number>>;

/** The only column of counters and gauges. */
export const PLAIN: readonly Column[] = [{ suffix: '', label: '' }];

/** The columns of a histogram with these upper bounds; `+Inf` is added. */
export function histogramColumns(bounds: readonly number[]): Column[] {
  return [
    ...[...bounds, '+Inf'].map((bound) => ({ suffix: '_bucket', label: `le="${bound}"` })),
    { suffix: '_sum', label: '' },
    { suffix: '_count', label: '' },
  ];
}

/** A counter or gauge with these values. */
export function plainFamily(
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  values: readonly (readonly [Labels, number])[],
): MetricFamily {
  const series = new Map(values.map(([labels, value]) => [labelText(labels), [value]]));
  return { name, help, type, aggregator: 'sum', columns: PLAIN, series };
}

/** Labels in the format of the page, in the given order. */
export function labelText(labels: Labels): string {
  return joinLabels(labels, Object.keys(labels));
}

/** Labels in the format of the page, sorted by name, so that the given order does not matter. */
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
