import { oneLine } from '../../contract/errors/index.js';

/** Ends the process when its output is closed. For commands that do not end by themselves. */
export function endWithReader(): void {
  process.stdout.once('error', () => process.exit());
}

/** Prints one line of text, without control characters. */
export function printLine(text: string): void {
  process.stdout.write(`${oneLine(text)}\n`);
}

export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** Prints one line of JSON. Escapes U+007F to U+009F, which `JSON.stringify` leaves as they are. */
export function printJson(value: unknown): void {
  const text = JSON.stringify(value).replaceAll(
    /[\u007f-\u009f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
  process.stdout.write(`${text}\n`);
}
