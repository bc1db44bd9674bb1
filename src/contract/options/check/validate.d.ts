import * as v from 'valibot';
/** Maximum time of a timer. Node's timers hold a signed 32-bit number of ms; a longer timer fires at once. */
export declare const MAX_TIMER_MS: number;
/** Maximum number of workers. A higher number is probably a mistake, and is refused. */
export declare const MAX_WORKERS = 256;
/** A whole number between two bounds; the message names both. */
export declare const integer: (min: number, max: number) => v.SchemaWithPipe<readonly [v.NumberSchema<string>, v.IntegerAction<number, string>, v.MinValueAction<number, number, string>, v.MaxValueAction<number, number, string>]>;
/** A whole number between two bounds, as a part of a larger check. `expected` is the message of the larger check. */
export declare const integerOf: (expected: string, min: number, max: number) => v.SchemaWithPipe<readonly [v.NumberSchema<string>, v.IntegerAction<number, string>, v.MinValueAction<number, number, string>, v.MaxValueAction<number, number, string>]>;
/** A time in ms that a timer can hold. */
export declare const durationMs: (min?: number, expected?: string) => v.SchemaWithPipe<readonly [v.NumberSchema<string>, v.FiniteAction<number, string>, v.MinValueAction<number, number, string>, v.MaxValueAction<number, number, string>]>;
export declare const flag: v.BooleanSchema<"true or false">;
export declare const oneOf: <const T extends readonly string[]>(values: T) => v.PicklistSchema<T, `one of ${string}`>;
/** A value that may be missing or `undefined`; `byDefault` then replaces it. */
export declare const option: <T, const D>(schema: v.GenericSchema<unknown, T>, byDefault: D) => v.GenericSchema<unknown, T | D>;
/** The result of {@link optionGroup}. */
type OptionGroup<T extends v.ObjectEntries> = {
    readonly [K in keyof T]: v.InferOutput<T[K]>;
};
/**
 * An object. Each key of `entries` is checked by its schema, even if the key is missing. Other keys
 * are refused. A missing object counts as empty. The error names all wrong keys. The result is frozen.
 */
export declare function optionGroup<const T extends v.ObjectEntries>(entries: T, expected?: string): v.GenericSchema<unknown, OptionGroup<T>>;
/** An {@link optionGroup}, or `false`. */
export declare function optionGroupOrFalse<const T extends v.ObjectEntries>(entries: T): v.GenericSchema<unknown, OptionGroup<T> | false>;
export declare function isObject(value: unknown): value is object;
/**
 * Checks `input` against `schema`. One error names every wrong key, its value and what is allowed.
 *
 * @throws ClusterConfigurationError if a key is wrong.
 */
export declare function validate<const T extends v.GenericSchema>(schema: T, input: unknown, subject: string): v.InferOutput<T>;
/** Formats a value for a message, short and on one line. */
export declare function show(value: unknown): string;
export {};
