import { stripVTControlCharacters } from 'node:util';

/** A failure that the user can fix. The command prints the message and exits with the exit code. */
export class ToolError extends Error {
  constructor(
    message: string,
    readonly exitCode: 1 | 64 | 69 | 70 = 1,
  ) {
    super(message);
  }
}

/** Formats untrusted text as one line, without terminal control characters. */
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
  /** Whether the column is left-aligned, for text. Default: right-aligned, for numbers. */
  readonly left?: boolean;
}

/** The lines of a table. The first line contains the titles. */
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

/** Formats milliseconds, with one decimal if the number is small. */
export function formatMs(ms: number): string {
  return ms.toFixed(ms < 10 ? 1 : 0);
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}
