import { inspect } from 'node:util';

/** A thrown value in full, with its stack. Never throws, although a getter or a proxy may. */
export function inspected(thrown: unknown): string {
  try {
    return inspect(thrown);
  } catch {
    return 'a value that cannot be shown as text';
  }
}
