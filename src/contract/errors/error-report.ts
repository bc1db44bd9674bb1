import { inspect, stripVTControlCharacters } from 'node:util';

/** Maximum length of a text in a log line, in characters. Bounds the time to clean the text. */
const MAX_TEXT_LENGTH = 4_096;

/** Formats untrusted text as one log line. */
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
 * separators and characters that change the text direction. Truncates the text to the maximum length.
 */
export function clean(text: string): string {
  return stripVTControlCharacters(text.slice(0, MAX_TEXT_LENGTH)).replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu,
    (character) => ('\n\r\t'.includes(character) ? character : ''),
  );
}

const UNSHOWN = 'a value that cannot be converted to text';

/** The message of a thrown value. Never throws, even if the value cannot be converted to text. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return `${thrown.message}`;
    return typeof thrown === 'string' ? thrown : inspect(thrown);
  } catch {
    return UNSHOWN;
  }
}

/** A thrown value in full, with its stack. Never throws, even if a getter or a proxy does. */
export function inspected(thrown: unknown): string {
  try {
    return inspect(thrown);
  } catch {
    return UNSHOWN;
  }
}

/** An error, serialised for another process. */
export interface ErrorReport {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: string | undefined;
  /** Whether the same error was already reported in full, for another worker or attempt. */
  readonly repeated?: boolean | undefined;
}

/** Truncates a text to the maximum length for a message, in characters. */
export function cutText(text: string): string {
  return text.slice(0, 65_536);
}

/** Converts a thrown value to a report whose texts are truncated. Never throws. */
export function reportError(thrown: unknown): ErrorReport {
  try {
    if (!(thrown instanceof Error)) return { name: 'Error', message: cutText(String(thrown)) };
    const { name, message, stack, code } = thrown as NodeJS.ErrnoException;
    return {
      name: cutText(String(name)),
      message: cutText(String(message)),
      stack: typeof stack === 'string' ? cutText(stack) : undefined,
      code: typeof code === 'string' ? cutText(code) : undefined,
    };
  } catch {
    // String() throws for an object without a prototype. A getter, a proxy or toString() may throw.
    return { name: 'Error', message: UNSHOWN };
  }
}

/** Calls a user's function. Passes its error to `failed`, whether thrown or rejected. */
export function callSafely(call: () => unknown, failed: (error: unknown) => void): void {
  try {
    const result = call();
    if (result instanceof Promise) result.catch(failed);
  } catch (error) {
    failed(error);
  }
}
