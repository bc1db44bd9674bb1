import * as v from 'valibot';
import { ClusterConfigurationError } from '../errors/index.js';

/** Timers of Node hold a signed 32-bit number of ms; a larger one fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A whole number between two bounds; the message names both. */
export const integer = (min: number, max: number) => {
  const expected = `a whole number from ${min} to ${max}`;
  return v.pipe(
    v.number(expected),
    v.integer(expected),
    v.minValue(min, expected),
    v.maxValue(max, expected),
  );
};

/** A time in ms that a timer can hold. */
export const durationMs = (min = 0) => {
  const expected = `a number of milliseconds from ${min} to ${MAX_TIMER_MS}`;
  return v.pipe(
    v.number(expected),
    v.finite(expected),
    v.minValue(min, expected),
    v.maxValue(MAX_TIMER_MS, expected),
  );
};

/** A number between two bounds that need not be whole. */
export const numberBetween = (min: number, max: number) => {
  const expected = `a number from ${min} to ${max}`;
  return v.pipe(
    v.number(expected),
    v.finite(expected),
    v.minValue(min, expected),
    v.maxValue(max, expected),
  );
};

export const oneOf = <const T extends readonly string[]>(values: T) =>
  v.picklist(values, `one of ${values.map((value) => `'${value}'`).join(', ')}`);

/** An object in which each key may be left out, is `undefined` for its default, and no other key is known. */
export const optionGroup = <T extends v.ObjectEntries>(entries: T) =>
  v.strictObject(
    Object.fromEntries(
      Object.entries(entries).map(([key, schema]) => [key, v.optional(schema)]),
    ) as { [K in keyof T]: v.OptionalSchema<T[K], undefined> },
    (issue) =>
      issue.expected === 'never'
        ? `no such option here; known are ${Object.keys(entries).join(', ')}`
        : 'an object',
  );

/**
 * Checks `input` against `schema` and names every key that is wrong, the value
 * seen and what is allowed, in one message.
 *
 * @throws ClusterConfigurationError when anything is wrong.
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
    return `${key}: ${show(issue.input)} is not allowed; expected ${issue.message}`;
  });
  throw new ClusterConfigurationError(`invalid ${subject}: ${[...new Set(problems)].join(' | ')}`);
}

/** A value as it is best recognised in a message: short, on one line. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object' && value !== null) {
    return Array.isArray(value) ? 'an array' : 'an object';
  }
  return String(value);
}
