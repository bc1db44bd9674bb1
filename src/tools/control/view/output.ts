import { oneLine } from '../../../contract/errors/index.js';

/** Ends the process with its reader. For commands that only show, and have no end of their own. */
export function endWithReader(): void {
  process.stdout.once('error', () => process.exit(0));
}

/** One line of text, without what a terminal would obey. */
export function printLine(text: string): void {
  process.stdout.write(`${oneLine(text)}\n`);
}

export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** One line of JSON. JSON leaves the control characters beyond ASCII as they are. */
export function printJson(value: unknown): void {
  process.stdout.write(`${jsonLine(value)}\n`);
}

export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\u009f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
}
