import { stripVTControlCharacters } from 'node:util';

/** The longest text in a line. A longer text is cut before anything else is done with it. */
const MAX_TEXT_LENGTH = 4_096;

/** Text from an app, or from outside, as one line of a log. */
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
