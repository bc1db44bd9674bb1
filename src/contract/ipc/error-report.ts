/** An error as it crosses a process boundary. */
export interface ErrorReport {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: string | undefined;
  /** It has been told whole before, of another worker or attempt. */
  readonly repeated?: boolean | undefined;
}

/** Longest text in a message; more of an error or a path says nothing more. */
export const MAX_TEXT_LENGTH = 65_536;

/** A text that fits a message. */
export function cutText(text: string): string {
  return text.slice(0, MAX_TEXT_LENGTH);
}

/** An error, or whatever else was thrown, as a report that fits a message. Never throws. */
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

/** Anything can be thrown, also what has no text: an object without a prototype, a throwing toString(). */
function asText(value: unknown): string {
  try {
    return cutText(String(value));
  } catch {
    return 'a value that cannot be shown as text';
  }
}
