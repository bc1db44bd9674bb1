import { inspected } from './thrown.js';

/** An error in the form in which it is sent to another process. */
export interface ErrorReport {
  readonly name: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: string | undefined;
  /** Whether the same error was already reported in full, for another worker or attempt. */
  readonly repeated?: boolean | undefined;
}

/** Cuts a text to the maximum length of a text in a message, in characters. */
export function cutText(text: string): string {
  return text.slice(0, 65_536);
}

/** Reports an error or any other thrown value, cut to fit into a message. Never throws. */
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
    // An object without a prototype has no text, and a getter, a proxy or toString() may throw.
    return { name: 'Error', message: 'a value that cannot be shown as text' };
  }
}

/** Reports an uncaught error. The stack also has the causes and all other properties, because nothing else shows them. */
export function reportUncaught(thrown: unknown): ErrorReport {
  const report = reportError(thrown);
  return report.stack === undefined ? report : { ...report, stack: cutText(inspected(thrown)) };
}
