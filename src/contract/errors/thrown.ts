import { inspect } from 'node:util';

/** The message of a thrown value. Never throws, although some values cannot be converted to text. */
export function messageOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error) return `${thrown.message}`;
    return typeof thrown === 'string' ? thrown : inspect(thrown);
  } catch {
    return 'a value that cannot be shown as text';
  }
}

/** A thrown value in full, with its stack. Never throws, although a getter or a proxy may. */
export function inspected(thrown: unknown): string {
  try {
    return inspect(thrown);
  } catch {
    return 'a value that cannot be shown as text';
  }
}
