import { stripVTControlCharacters } from 'node:util';

/** Of any text in a line. What is longer is cut before anything looks at it. */
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
 * No escape sequence, no control character but tabs and line breaks, no other separator of lines,
 * and nothing that turns the order of characters around; never endless.
 */
export function clean(text: string): string {
  return stripVTControlCharacters(text.slice(0, MAX_TEXT_LENGTH)).replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu,
    (character) => ('\n\r\t'.includes(character) ? character : ''),
  );
}
