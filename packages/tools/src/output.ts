import { stripVTControlCharacters } from 'node:util';

/** A failure that the user can do something about. The command prints its message, and ends with its exit code. */
export class ToolError extends Error {
  constructor(
    message: string,
    readonly exitCode: 1 | 64 | 69 | 70 = 1,
  ) {
    super(message);
  }
}

/** Text from outside on one line, without what could move the terminal's cursor or colour its text. */
export function oneLine(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ');
}

export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

export interface Column<Row> {
  readonly title: string;
  readonly value: (row: Row) => string;
  /** Whether to align the column to the left, for text. Default: to the right, for figures. */
  readonly left?: boolean;
}

/** The lines of a table. The first line has the titles. */
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

/** Milliseconds, with one digit if they are few. */
export function formatMs(ms: number): string {
  return ms.toFixed(ms < 10 ? 1 : 0);
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}
