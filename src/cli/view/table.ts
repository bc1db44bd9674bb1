import { oneLine } from '../../contract/errors/index.js';

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  /** Whether to align the column to the left, for text. Default: to the right, for figures. */
  readonly left?: boolean;
}

/** The lines of a table, without control characters. The first line has the titles. */
export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[] {
  const cells = rows.map((row) => columns.map(({ value }) => oneLine(value(row))));
  const widths = columns.map(({ title }, index) =>
    Math.max(title.length, ...cells.map((line) => line[index]!.length)),
  );
  return [columns.map(({ title }) => title), ...cells].map((line) =>
    line
      .map((cell, index) =>
        columns[index]!.left ? cell.padEnd(widths[index]!) : cell.padStart(widths[index]!),
      )
      .join('  ')
      .trimEnd(),
  );
}

const UNKNOWN = '-';
const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const;

/** A duration in its two largest units: `3d 4h`, `5m 12s`. */
export function formatSeconds(seconds: number): string {
  let rest = Math.max(0, Math.floor(seconds));
  const parts: string[] = [];
  for (const [unit, size] of UNITS) {
    if (rest >= size || parts.length > 0) parts.push(`${Math.floor(rest / size)}${unit}`);
    rest %= size;
  }
  return [...parts, `${rest}s`].slice(0, 2).join(' ');
}

export function formatMegabytes(bytes: number | null): string {
  return bytes === null ? UNKNOWN : (bytes / 1e6).toFixed(0);
}

/** Milliseconds, with one digit if they are few. */
export function formatMs(ms: number): string {
  return ms.toFixed(ms < 10 ? 1 : 0);
}

export function formatNumber(value: number | null, digits = 0): string {
  return value === null ? UNKNOWN : value.toFixed(digits);
}
