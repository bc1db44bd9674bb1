import { inspect } from 'node:util';

/** Some values cannot be converted to text: a getter, a proxy or toString() may throw. */
const NOT_SHOWN = 'a value that cannot be shown as text';

/** The message of a thrown value. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return `${thrown.message}`;
    return typeof thrown === 'string' ? thrown : inspect(thrown);
  } catch {
    return NOT_SHOWN;
  }
}

/** A thrown value in full, with its stack. Never throws. */
export function inspected(thrown: unknown): string {
  try {
    return inspect(thrown);
  } catch {
    return NOT_SHOWN;
  }
}
