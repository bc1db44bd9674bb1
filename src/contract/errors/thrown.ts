import { inspect } from 'node:util';

/** The message of what was thrown: anything can be, also what has no text. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return `${thrown.message}`;
    return typeof thrown === 'string' ? thrown : inspect(thrown);
  } catch {
    return 'a value that cannot be shown as text';
  }
}
