import * as v from 'valibot';
import { ClusterConfigurationError } from '../errors/errors.js';

/** Maximum time of a timer. Node's timers hold a signed 32-bit number of ms; a longer timer fires immediately. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

/** Maximum number of workers. A higher number is probably a mistake, and is refused. */
export const MAX_WORKERS = 256;

export const MAX_PORT = 65_535;

/** Maximum length of a profile, in seconds. Longer profiles are large and do not show more. */
export const MAX_PROFILE_SECONDS = 60;

export const integer = (
  min: number,
  max: number,
  expected = `a whole number from ${min} to ${max}`,
) => v.message(v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max)), expected);

export const autoOrInteger = (min: number, max: number) => {
  const expected = `'auto' or a whole number from ${min} to ${max}`;
  return v.union([v.literal('auto'), integer(min, max, expected)], expected);
};

/** A time in ms that a timer can hold. */
export const durationMs = (
  min = 0,
  expected = `a number of milliseconds from ${min} to ${MAX_TIMER_MS}`,
) => v.message(v.pipe(v.number(), v.finite(), v.minValue(min), v.maxValue(MAX_TIMER_MS)), expected);

export const flag = v.boolean('true or false');

export const oneOf = <const T extends readonly string[]>(values: T) =>
  v.picklist(values, `one of ${values.map((value) => `'${value}'`).join(', ')}`);

export const text = (pattern: RegExp, expected: string) =>
  v.message(v.pipe(v.string(), v.regex(pattern)), expected);

const EXPECTED_PORT = `a whole number from 0 to ${MAX_PORT}`;

/** A port as text, as in the environment. Requires digits: `Number('')` and `Number(' ')` are 0. */
export const portFromText = v.pipe(
  text(/^(0|[1-9]\d{0,4})$/, EXPECTED_PORT),
  v.check((digits) => Number(digits) <= MAX_PORT, EXPECTED_PORT),
  v.transform(Number),
);

export const port = v.union([integer(0, MAX_PORT), portFromText], EXPECTED_PORT);

/** An option with its default, which replaces a value that is missing or `undefined`. */
export const option = <In, Out, const D>(
  schema: v.GenericSchema<In, Out>,
  byDefault: D,
): v.GenericSchema<In | undefined, Out | D> =>
  v.pipe(
    v.optional(schema),
    v.transform((value) => (value === undefined ? byDefault : value)),
  );

/**
 * An option that a variable overrides. If several names are given, the first variable that is set
 * counts. Text made of digits is read as a number, unless `ofText` parses the text.
 */
export function variable<In, Out>(
  names: string | readonly string[],
  schema: v.GenericSchema<In, Out>,
  ofText: v.GenericSchema<string, Out> = v.pipe(
    v.string(),
    // Requires digits, because `Number('')` and `Number(' ')` are 0.
    v.transform((given): unknown => (/^\d+$/.test(given) ? Number(given) : given)),
    schema,
  ),
): v.GenericSchema<In, Out> {
  return v.pipe(schema, v.metadata({ names: [names].flat(), ofText }));
}

const UNKNOWN = 'no such option here';

type Entries = Readonly<Record<string, v.GenericSchema>>;

/** The result of {@link optionGroup}. */
type Resolved<T extends Entries> = { readonly [K in keyof T]: v.InferOutput<T[K]> };

/** The schemas of the options that `T` declares, one for each key. */
export type SchemaOf<T> = { readonly [K in keyof T]-?: v.GenericSchema<T[K] | undefined, unknown> };

/**
 * An object. Each key of `entries` is checked by its schema, even if the key is missing. Other keys
 * are refused. A missing object counts as empty. The error names all wrong keys. The result is frozen.
 */
export function optionGroup<const T extends Entries>(
  entries: T,
  expected = 'an object',
): v.GenericSchema<never, Resolved<T>> {
  const known = Object.keys(entries).join(', ');
  return v.pipe(
    v.optional(v.custom<object>(isObject, `${expected} with ${known}`), {}),
    v.rawTransform(({ dataset, addIssue }): Resolved<T> => {
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
        if (!Object.hasOwn(entries, key)) refuse(key, value, `${UNKNOWN}; known options: ${known}`);
      }
      return Object.freeze(group) as Resolved<T>;
    }),
    v.metadata({ entries: entries as Entries }),
  ) as never;
}

export function optionGroupOrFalse<const T extends Entries>(
  entries: T,
): v.GenericSchema<never, Resolved<T> | false> {
  const group = optionGroup(entries, 'false, or an object');
  const either = v.lazy((input): v.GenericSchema<unknown, Resolved<T> | false> =>
    input === false ? v.literal(false) : group,
  );
  return v.pipe(either, v.metadata({ entries: entries as Entries })) as never;
}

/** An option, with the variables that override it. */
interface Leaf {
  /** The keys of its groups and its own key. */
  readonly path: readonly string[];
  readonly names?: readonly string[];
  readonly ofText?: v.GenericSchema<string, unknown>;
}

/** The options of a group and of the groups in it. */
export function leavesOf(group: v.GenericSchema, path: readonly string[] = []): readonly Leaf[] {
  const { wrapped = group } = group as { wrapped?: v.GenericSchema }; // of an optional group
  const { entries, ...rest } = { ...v.getMetadata(wrapped), ...v.getMetadata(group) } as Omit<
    Leaf,
    'path'
  > & { entries?: Entries };
  if (entries === undefined) return [{ path, ...rest }];
  return Object.entries(entries).flatMap(([key, schema]) => leavesOf(schema, [...path, key]));
}

/**
 * Reads the variables of the environment that override options of a group. A variable that is set
 * but empty counts as not set, as in a shell's `${VAR:-default}`.
 *
 * @returns the group with only the overridden options.
 * @throws ClusterConfigurationError that names every variable that cannot be parsed.
 */
export function readVariables(group: v.GenericSchema, env: NodeJS.ProcessEnv): object {
  const found = leavesOf(group).flatMap(({ path, names = [], ofText }) => {
    const name = names.find((each) => env[each]);
    return name === undefined ? [] : [{ path, name, schema: ofText! }];
  });
  const schemas = Object.fromEntries(found.map(({ name, schema }) => [name, schema]));
  const values = validate(v.object(schemas), env, 'environment');
  return found.reduce((all, { path, name }) => {
    const one = path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), values[name]);
    return overridden(all, one as object);
  }, {});
}

/** Copies `options`. Values in `by` take precedence, also within groups. */
export function overridden<T extends object>(options: T, by: object): T {
  const all = { ...options } as Record<string, unknown>;
  for (const [key, value] of Object.entries(by)) {
    const before = all[key];
    all[key] = isObject(value) ? overridden(isObject(before) ? before : {}, value) : value;
  }
  return all as T;
}

function isObject(value: unknown): value is object {
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
    const key = v.getDotPath(issue);
    const seen = SECRET.test(key ?? subject) ? 'its value' : show(issue.input);
    const expected = issue.message.startsWith(UNKNOWN) ? '' : 'expected ';
    return `${key === null ? '' : `${key}: `}${seen} is not allowed; ${expected}${issue.message}`;
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

/** @throws ClusterConfigurationError if a cluster cannot have that slot. */
export function checkSlot(slot: number): number {
  return validate(integer(0, MAX_WORKERS - 1), slot, 'slot');
}

/** @throws ClusterConfigurationError if a cluster cannot have that number of workers. */
export function checkWorkerCount(workers: number): number {
  return validate(integer(1, MAX_WORKERS), workers, 'number of workers');
}

/** Maximum number of threads of a process. A higher number is probably a mistake, and is refused. */
export const MAX_THREADS = 256;

/** A `@CpuBound()` method runs in a thread of the pool, or on the event loop. */
export type OffloadMode = 'threads' | 'inline';

/** The option `offload.threads`. */
export const threads = variable('CLUSTER_THREADS', option(autoOrInteger(1, MAX_THREADS), 'auto'));

/**
 * The variables for threads, separate from the options of `forRoot()`: the primary checks them
 * before it forks, and does not load those options.
 */
export const offloadVariables = optionGroup({
  mode: variable('CLUSTER_OFFLOAD', option(oneOf(['threads', 'inline']), undefined)),
  threads,
});
