import { inspect } from 'node:util';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import * as v from 'valibot';

/** Node's timers hold a signed 32-bit number of ms; a longer timer fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export function integer(min: number, max: number, what = '') {
  const expected = `a whole number from ${min} to ${max}${what}`;
  return v.pipe(v.number(expected), v.integer(expected), v.minValue(min, expected), v.maxValue(max, expected));
}

/** A time in ms that a timer can hold. */
export function durationMs(min = 0) {
  const expected = `a number of milliseconds from ${min} to ${MAX_TIMER_MS}`;
  return v.pipe(v.number(expected), v.minValue(min, expected), v.maxValue(MAX_TIMER_MS, expected));
}

export function text(max: number) {
  const expected = `a text of 1 to ${max} characters`;
  return v.pipe(v.string(expected), v.nonEmpty(expected), v.maxLength(max, expected));
}

/** @throws ClusterConfigurationError that names every wrong key, its value and what is allowed. */
export function validate<const S extends v.GenericSchema>(
  schema: S,
  input: unknown,
  subject: string,
): v.InferOutput<S> {
  const result = v.safeParse(schema, input);
  if (result.success) return result.output;
  const problems = result.issues.map((issue) => {
    const expected = issue.kind === 'schema' && issue.type === 'strict_object' ? 'no such option' : issue.message;
    return `${v.getDotPath(issue) ?? subject}: ${show(issue.input)} is not allowed; expected ${expected}`;
  });
  throw new ClusterConfigurationError(`invalid ${subject}: ${problems.join(' | ')}`);
}

/** Formats a value for a message, short and on one line. */
export function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : inspect(value, { depth: 0, breakLength: Infinity });
}

/** The message of a thrown value. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : inspect(thrown);
}
