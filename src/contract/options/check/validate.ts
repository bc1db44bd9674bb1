import * as v from 'valibot';
import { ClusterConfigurationError } from '../../errors/cluster.errors.js';

/** Maximum time of a timer. Node's timers hold a signed 32-bit number of ms; a longer timer fires at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Maximum number of workers. A higher number is probably a mistake, and is refused. */
export const MAX_WORKERS = 256;

/** A whole number between two bounds; the message names both. */
export const integer = (min: number, max: number) =>
  integerOf(`a whole number from ${min} to ${max}`, min, max);

/** A whole number between two bounds, as a part of a larger check. `expected` is the message of the larger check. */
export const integerOf = (expected: string, min: number, max: number) =>
  v.pipe(
    v.number(expected),
    v.integer(expected),
    v.minValue(min, expected),
    v.maxValue(max, expected),
  );

/** A time in ms that a timer can hold. */
export const durationMs = (
  min = 0,
  expected = `a number of milliseconds from ${min} to ${MAX_TIMER_MS}`,
) =>
  v.pipe(
    v.number(expected),
    v.finite(expected),
    v.minValue(min, expected),
    v.maxValue(MAX_TIMER_MS, expected),
  );

export const flag = v.boolean('true or false');

export const oneOf = <const T extends readonly string[]>(values: T) =>
  v.picklist(values, `one of ${values.map((value) => `'${value}'`).join(', ')}`);

/** A value that may be missing or `undefined`; `byDefault` then replaces it. */
export const option = <T, const D>(
  schema: v.GenericSchema<unknown, T>,
  byDefault: D,
): v.GenericSchema<unknown, T | D> =>
  v.pipe(
    v.optional(schema),
    v.transform((value) => (value === undefined ? byDefault : value)),
  );

const UNKNOWN = 'no such option here';

/** The result of {@link optionGroup}. */
type OptionGroup<T extends v.ObjectEntries> = { readonly [K in keyof T]: v.InferOutput<T[K]> };

/**
 * An object. Each key of `entries` is checked by its schema, even if the key is missing. Other keys
 * are refused. A missing object counts as empty. The error names all wrong keys. The result is frozen.
 */
export function optionGroup<const T extends v.ObjectEntries>(
  entries: T,
  expected = 'an object',
): v.GenericSchema<unknown, OptionGroup<T>> {
  const known = Object.keys(entries).join(', ');
  return v.pipe(
    v.optional(v.custom<object>(isObject, `${expected} with ${known}`), {}),
    v.rawTransform(({ dataset, addIssue }) => {
      const given = dataset.value as Readonly<Record<string, unknown>>;
      const refuse = (key: string, input: unknown, message: string, path: object[] = []): void => {
        const at = { type: 'object', origin: 'value', input: given, key, value: given[key] };
        addIssue({ input, message, path: [at, ...path] as never });
      };
      const group: Record<string, unknown> = {};
      for (const [key, schema] of Object.entries(entries)) {
        const result = v.safeParse(schema, given[key]);
        group[key] = result.output;
        for (const { input, message, path } of result.issues ?? []) {
          refuse(key, input, message, path);
        }
      }
      for (const [key, value] of Object.entries(given)) {
        if (!Object.hasOwn(entries, key)) refuse(key, value, `${UNKNOWN}; known are ${known}`);
      }
      return Object.freeze(group) as OptionGroup<T>;
    }),
  );
}

/** An {@link optionGroup}, or `false`. */
export function optionGroupOrFalse<const T extends v.ObjectEntries>(
  entries: T,
): v.GenericSchema<unknown, OptionGroup<T> | false> {
  const group = optionGroup(entries, 'false, or an object');
  return v.lazy((input): v.GenericSchema<unknown, OptionGroup<T> | false> =>
    input === false ? v.literal(false) : group,
  );
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Matches keys whose values must not appear in a log. */
const SECRET = /token|secret|password/i;

/**
 * Checks `input` against `schema`. One error names every wrong key, its value and what is allowed.
 *
 * @throws ClusterConfigurationError if a key is wrong.
 */
export function validate<const T extends v.GenericSchema>(
  schema: T,
  input: unknown,
  subject: string,
): v.InferOutput<T> {
  const result = v.safeParse(schema, input);
  if (result.success) return result.output;
  const problems = result.issues.map((issue) => {
    const key = v.getDotPath(issue) ?? subject;
    const seen = SECRET.test(key) ? 'its value' : show(issue.input);
    return issue.message.startsWith(UNKNOWN)
      ? `${key}: ${seen} is not allowed; ${issue.message}`
      : `${key}: ${seen} is not allowed; expected ${issue.message}`;
  });
  throw new ClusterConfigurationError(`invalid ${subject}: ${[...new Set(problems)].join(' | ')}`);
}

/** Formats a value for a message, short and on one line. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object' && value !== null) {
    return Array.isArray(value) ? 'an array' : 'an object';
  }
  return String(value);
}
