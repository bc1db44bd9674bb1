import { inspect, stripVTControlCharacters } from 'node:util';

/** Maximum length of a text in a line, in characters. A longer text is cut before it is cleaned. */
const MAX_TEXT_LENGTH = 4_096;

/** Formats a text from an app or from outside as one line of a log. */
export function oneLine(text: string): string {
  return clean(text)
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' | ')
    .replaceAll('\t', ' ');
}

/**
 * Removes escape sequences, control characters other than tabs and line breaks, other line
 * separators and characters that change the text direction. Cuts a text that is too long.
 */
export function clean(text: string): string {
  return stripVTControlCharacters(text.slice(0, MAX_TEXT_LENGTH)).replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu,
    (character) => ('\n\r\t'.includes(character) ? character : ''),
  );
}

const UNSHOWN = 'a value that cannot be shown as text';

/** The message of a thrown value. Never throws, although some values cannot be converted to text. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return `${thrown.message}`;
    return typeof thrown === 'string' ? thrown : inspect(thrown);
  } catch {
    return UNSHOWN;
  }
}

/** A thrown value in full, with its stack. Never throws, although a getter or a proxy may. */
export function inspected(thrown: unknown): string {
  try {
    return inspect(thrown);
  } catch {
    return UNSHOWN;
  }
}
