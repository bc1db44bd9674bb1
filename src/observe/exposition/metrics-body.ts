import { type Column, METRIC_TYPES, type MetricFamily, type Row } from './metric-family.js';

/** A family in a message. A column is the text `suffix label`. The values of all series follow each other. */
type WireFamily = readonly [
  name: string,
  help: string,
  type: string,
  aggregator: string,
  columns: readonly string[],
  labels: readonly string[],
  values: readonly WireValue[],
];

/** JSON has no NaN and no infinities, so these are sent as text. */
type WireValue = number | string | null;

/**
 * Encodes the metrics of one process, or the merged metrics of several processes, as a text that is
 * sent between processes.
 */
export function encodeBody(families: readonly MetricFamily[]): string {
  return JSON.stringify(families.map(encodeFamily));
}

function encodeFamily({ name, help, type, aggregator, columns, series }: MetricFamily): WireFamily {
  const values: WireValue[] = [];
  for (const row of series.values()) {
    for (const value of row) {
      values.push(value === null || Number.isFinite(value) ? value : String(value));
    }
  }
  const names = columns.map(({ suffix, label }) => `${suffix} ${label}`);
  return [name, help, type, aggregator, names, [...series.keys()], values];
}

/**
 * Decodes a text of {@link encodeBody}; `undefined` for any other text, which a worker may send
 * because it runs the app's code. A worker without metrics sends an empty text.
 */
export function decodeBody(text: string): readonly MetricFamily[] | undefined {
  if (text === '') return undefined;
  try {
    return (JSON.parse(text) as readonly WireFamily[]).map(decodeFamily);
  } catch {
    return undefined;
  }
}

const NAME = /^[a-zA-Z_:][\w:]*$/;
const SUFFIX = /^(_bucket|_sum|_count)?$/;
const COLUMN_LABEL = /^((le|quantile)="[^"\\\n]*")?$/;
const LABELS = /^(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*"(?:,(?=[a-zA-Z_])|$))*$/;

function matches(pattern: RegExp, text: unknown): boolean {
  return typeof text === 'string' && pattern.test(text);
}

function decodeFamily(wire: WireFamily): MetricFamily {
  const [name, help, typeName, aggregator, columnNames, labels, values] = wire;
  const type = METRIC_TYPES.find((each) => each === typeName);
  if (type === undefined || !matches(NAME, name)) throw new TypeError('not a metric');
  if (typeof help !== 'string' || typeof aggregator !== 'string' || !Array.isArray(labels)) {
    throw new TypeError('not a metric');
  }
  const columns = columnNames.map(decodeColumn);
  const series = new Map<string, Row>();
  let at = 0;
  for (const text of labels) {
    // Checks the labels, because one invalid line would make Prometheus refuse the whole page.
    if (!matches(LABELS, text)) throw new TypeError('not labels');
    const row: Row = [];
    for (let i = 0; i < columns.length; i++, at++) {
      const value = values[at] ?? null;
      row.push(value === null ? null : Number(value));
    }
    series.set(text, row);
  }
  return { name, help, type, aggregator, columns, series };
}

function decodeColumn(text: string): Column {
  const space = text.indexOf(' ');
  const column = { suffix: text.slice(0, space), label: text.slice(space + 1) };
  if (!SUFFIX.test(column.suffix) || !COLUMN_LABEL.test(column.label)) {
    throw new TypeError('not a column');
  }
  return column;
}
