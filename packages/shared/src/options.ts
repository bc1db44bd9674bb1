import { inspect } from 'node:util';
import { serialize } from 'node:v8';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import * as v from 'valibot';
import { ClusterSharedError } from './errors.js';
import { MAX_BODY_BYTES } from './wire/protocol.js';

/** Node's timers hold a signed 32-bit number of ms; a longer timer fires immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export function integer(min: number, max: number) {
  const expected = `a whole number from ${min} to ${max}`;
  return v.pipe(
    v.number(expected),
    v.integer(expected),
    v.minValue(min, expected),
    v.maxValue(max, expected),
  );
}

/** A time in ms that a timer can hold. */
export function durationMs() {
  const expected = `a number of milliseconds from 0 to ${MAX_TIMER_MS}`;
  return v.pipe(v.number(expected), v.minValue(0, expected), v.maxValue(MAX_TIMER_MS, expected));
}

/** The name of a lock, a limit, a cache or an event, or a key of a limit. */
export function text(max = 1_024) {
  const expected = `a string of 1 to ${max} characters`;
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
    const key = v.getDotPath(issue) ?? subject;
    if (issue.type === 'strict_object' && issue.expected === 'never') {
      return `${key} is not allowed; known keys: ${Object.keys((schema as object as { entries: object }).entries).join(', ')}`;
    }
    return `${key}: ${show(issue.input)} is not allowed; expected ${issue.message}`;
  });
  throw new ClusterConfigurationError(`invalid ${subject}: ${problems.join(' | ')}`);
}

/** Formats a value for a message, short and on one line. */
export function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80));
  return inspect(value, { depth: 0, breakLength: Infinity });
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : inspect(thrown);
}

/**
 * Encodes a value for other workers, to be copied as if by `structuredClone()`.
 *
 * @param what describes the value in the error message.
 * @throws ClusterSharedError if the value cannot be copied, or is too large.
 */
export function encode(what: string, value: unknown): Buffer {
  let body: Buffer;
  try {
    body = serialize(value);
  } catch (error) {
    throw new ClusterSharedError(`${what} cannot be copied: ${messageOf(error)}; send plain data`);
  }
  if (body.length <= MAX_BODY_BYTES) return body;
  throw new ClusterSharedError(
    `${what} is ${body.length} bytes; the maximum is ${MAX_BODY_BYTES}; send a reference to the data instead`,
  );
}
