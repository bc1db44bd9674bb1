import { clean } from '../../errors/index.js';

/** An object on one line, each of its texts bounded and without control characters. */
export function cleanJson(object: object): string {
  return JSON.stringify(object, (_key, value: unknown) =>
    typeof value === 'string' ? clean(value) : value,
  );
}
