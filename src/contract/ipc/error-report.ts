/** An error as it crosses a process boundary. */
export interface ErrorReport {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: string | undefined;
  /** The same error has been reported in full before, for another worker or attempt. */
  readonly repeated?: boolean | undefined;
}

/** The longest text in a message. A longer error or path would not be more useful. */
export const MAX_TEXT_LENGTH = 65_536;

/** A text that fits a message. */
export function cutText(text: string): string {
  return text.slice(0, MAX_TEXT_LENGTH);
}

/** A report, short enough for a message, of an error or any other thrown value. Never throws. */
export function reportError(thrown: unknown): ErrorReport {
  if (!(thrown instanceof Error)) return { name: 'Error', message: asText(thrown) };
  const { name, message, stack, code } = thrown as NodeJS.ErrnoException;
  return {
    name: asText(name),
    message: asText(message),
    stack: typeof stack === 'string' ? asText(stack) : undefined,
    code: typeof code === 'string' ? asText(code) : undefined,
  };
}

/** A thrown value may have no text: an object without a prototype, or with a toString() that throws. */
function asText(value: unknown): string {
  try {
    return cutText(String(value));
  } catch {
    return 'a value that cannot be shown as text';
  }
}
