import { oneLine } from '../contract/errors/errors.js';

/** The exit codes besides 0 and 1: EX_USAGE and EX_UNAVAILABLE of sysexits.h. */
export const EXIT = { usage: 64, unavailable: 69 } as const;

/** A failure that the user can fix. The command prints the message and exits with the exit code. */
export class CommandError extends Error {
  constructor(
    message: string,
    readonly exitCode: 1 | 64 | 69 = 1,
  ) {
    super(message);
  }
}

/** Prints one line of text, without control characters. */
export function printLine(text: string): void {
  process.stdout.write(`${oneLine(text)}\n`);
}

export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** Prints one line of JSON. Escapes U+007F to U+009F, which `JSON.stringify` does not escape. */
export function printJson(value: unknown): void {
  const text = JSON.stringify(value).replaceAll(
    /[\u007f-\u009f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
  process.stdout.write(`${text}\n`);
}

const FIGURE = /^(?:-|[\d.]+)$/;

/** The lines of a table, without control characters. Columns of numbers are right-aligned. */
export function formatTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
): string[] {
  const lines = [titles, ...rows.map((row) => row.map(oneLine))];
  const columns = titles.map((_, index) => lines.map((line) => line[index]!));
  const padded = columns.map((cells) => {
    const width = Math.max(...cells.map(({ length }) => length));
    const isOfFigures = cells.slice(1).every((cell) => FIGURE.test(cell));
    return cells.map((cell) => (isOfFigures ? cell.padStart(width) : cell.padEnd(width)));
  });
  return lines.map((_, index) =>
    padded
      .map((cells) => cells[index])
      .join('  ')
      .trimEnd(),
  );
}

/** A duration in its two largest units: `3d 4h`, `5m 12s`. */
export function formatSeconds(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [days, hours, minutes] = [86_400, 3_600, 60].map((unit) => Math.floor(whole / unit));
  const parts = [`${days}d`, `${hours! % 24}h`, `${minutes! % 60}m`, `${whole % 60}s`];
  const largest = parts.findIndex((part) => !part.startsWith('0'));
  return parts.slice(largest).slice(0, 2).join(' '); // for 0 s `largest` is -1, which selects the last part
}

/** Formats a number for a table; `-` if it is unknown. */
export function figure(value: number | null, digits = 0): string {
  return value === null ? '-' : value.toFixed(digits);
}

export function megabytes(bytes: number | null): string {
  return figure(bytes && bytes / 1e6);
}
