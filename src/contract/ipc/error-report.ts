/** An error in the form in which it is sent to another process. */
export interface ErrorReport {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: string | undefined;
  /** Whether the same error was already reported in full, for another worker or attempt. */
  readonly repeated?: boolean | undefined;
}

/** The maximum length of a text in a message, in characters. A longer text is cut. */
export const MAX_TEXT_LENGTH = 65_536;

/** Cuts a text to the maximum length of a text in a message. */
export function cutText(text: string): string {
  return text.slice(0, MAX_TEXT_LENGTH);
}

/** Reports an error or any other thrown value, cut to fit into a message. Never throws. */
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

/** Converts a value to text. `String()` fails for an object without a prototype, or with a toString() that throws. */
function asText(value: unknown): string {
  try {
    return cutText(String(value));
  } catch {
    return 'a value that cannot be shown as text';
  }
}
