import { clean } from '../../errors/index.js';

/** Formats an object as one line of JSON. Its texts are cut if too long, and cleaned of control characters. */
export function cleanJson(object: object): string {
  return JSON.stringify(object, (_key, value: unknown) =>
    typeof value === 'string' ? clean(value) : value,
  );
}
