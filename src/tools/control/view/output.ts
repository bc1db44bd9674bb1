import { oneLine } from '../../../contract/errors/index.js';

/** Ends the process once nobody reads its output. For commands that do not end by themselves. */
export function endWithReader(): void {
  process.stdout.once('error', () => process.exit());
}

/** One line of text, without control characters. */
export function printLine(text: string): void {
  process.stdout.write(`${oneLine(text)}\n`);
}

export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** One line of JSON. `JSON.stringify` does not escape the control characters beyond ASCII. */
export function printJson(value: unknown): void {
  const text = JSON.stringify(value).replaceAll(
    /[\u007f-\u009f]/g,
    (character) => `\\u00${character.charCodeAt(0).toString(16)}`,
  );
  process.stdout.write(`${text}\n`);
}
