import * as v from 'valibot';
import { ClusterConfigurationError } from '../errors/index.js';
import { MAX_TIMER_MS } from './timer-limit.js';

/** A whole number between two bounds; the message names both. */
export const integer = (min: number, max: number) =>
  integerOf(`a whole number from ${min} to ${max}`, min, max);

/** The same as a part of something: every check says what the whole takes. */
export const integerOf = (expected: string, min: number, max: number) =>
  v.pipe(
    v.number(expected),
    v.integer(expected),
    v.minValue(min, expected),
    v.maxValue(max, expected),
  );

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

const UNKNOWN = 'no such option here';

export const flag = v.boolean('true or false');

export const oneOf = <const T extends readonly string[]>(values: T) =>
  v.picklist(values, `one of ${values.map((value) => `'${value}'`).join(', ')}`);

/**
 * An object in which each key may be left out or `undefined` for its default,
 * and no other key is known. All keys that are wrong are named, not the first.
 */
export function optionGroup<const T extends v.ObjectEntries>(
  entries: T,
): v.GenericSchema<OptionGroup<T>> {
  const optional = Object.fromEntries(
    Object.entries(entries).map(([key, schema]) => [key, v.optional(schema)]),
  );
  const known = Object.keys(entries).join(', ');
  return v.lazy((input) =>
    v.pipe(
      v.custom<object>(isObject, `an object with ${known}`),
      v.looseObject(optional),
      v.rawCheck(({ addIssue }) => {
        // Of the input, not of what was parsed: that leaves out names like `constructor`.
        for (const [key, value] of Object.entries(isObject(input) ? input : {})) {
          if (Object.hasOwn(entries, key)) continue;
          addIssue({
            input: value,
            message: `${UNKNOWN}; known are ${known}`,
            path: [{ type: 'object', origin: 'key', input: input as never, key, value }],
          });
        }
      }),
    ),
  ) as unknown as v.GenericSchema<OptionGroup<T>>;
}

/** The same, or `false`. */
export function optionGroupOrFalse<const T extends v.ObjectEntries>(
  entries: T,
): v.GenericSchema<OptionGroup<T> | false> {
  const expected = `false, or an object with ${Object.keys(entries).join(', ')}`;
  const group = optionGroup(entries);
  return v.lazy((input) => (isObject(input) ? group : v.literal(false, expected)));
}

/** What passes {@link optionGroup}. */
export type OptionGroup<T extends v.ObjectEntries> = {
  readonly [K in keyof T]?: v.InferOutput<T[K]> | undefined;
};

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

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
    return issue.message.startsWith(UNKNOWN)
      ? `${key}: ${show(issue.input)} is not allowed; ${issue.message}`
      : `${key}: ${show(issue.input)} is not allowed; expected ${issue.message}`;
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
