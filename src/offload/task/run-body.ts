import { ClusterUncloneableError } from '../../contract/errors/errors.js';
import type { Class } from '../../contract/options/module.js';
import { describeError, ownClassOf, restoreError, type TaskError } from './task-error.js';
import { runInTrace, type TraceHeaders } from './trace-context.js';

/** How a call ended in the thread. */
export type RunResult =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** The parts of `[value]` that were Buffers. */
      readonly buffers: readonly Place[];
      /** The class of the value, or of the first of a list, if it was an instance of the app's. */
      readonly className?: string;
    }
  | {
      readonly ok: false;
      readonly error: TaskError;
      /** The class of the error, if the app has declared it and it is known here. */
      readonly type?: Class | undefined;
    };

/**
 * Runs the body of a task and prepares its result or error to be copied between threads. Never rejects.
 *
 * @param name the name of the task.
 * @param trace the caller's trace.
 */
export async function runBody(
  name: string,
  body: () => unknown,
  trace: TraceHeaders | undefined,
): Promise<RunResult> {
  try {
    const value = await runInTrace(trace, async () => lastValueOf(await body()));
    // A result that cannot be copied would end the thread where piscina sends it.
    if (typeof value !== 'string') cloneOf(name, value);
    const className = classNameOf(Array.isArray(value) ? value[0] : value);
    return { ok: true, value, buffers: buffersIn([value]), ...(className && { className }) };
  } catch (thrown) {
    return { ok: false, error: describeError(thrown), type: ownClassOf(thrown) };
  }
}

/** The result of a call, as the task returned it. @throws the error of the task. */
export function resultOf(result: RunResult): unknown {
  if (!result.ok) throw restoreError(result.error, result.type);
  return restoreBuffers([result.value], result.buffers)[0];
}

/**
 * A copy of an argument or a result, as another thread would get it.
 *
 * @throws ClusterUncloneableError Structured clone throws several classes of errors: a TypeError for
 * a stream, a RangeError for a value that is nested too deeply.
 */
export function cloneOf<T>(name: string, value: T): T {
  try {
    return structuredClone(value);
  } catch (cause) {
    throw new ClusterUncloneableError(
      `${name}: an argument or the result cannot be copied between threads: ${(cause as Error).message}; pass and return plain data (what structuredClone() takes)`,
      { cause },
    );
  }
}

/** The class of an instance that structured clone turns into a plain object. */
function classNameOf(value: unknown): string | undefined {
  if (Object.prototype.toString.call(value) !== '[object Object]') return undefined;
  const { constructor } = (Object.getPrototypeOf(value) ?? {}) as Partial<object>;
  return constructor === Object ? undefined : constructor?.name;
}

/** The last value of an Observable (Nest also responds with the last); of any other value, the value itself. */
async function lastValueOf(value: unknown): Promise<unknown> {
  if (typeof value !== 'object' || value === null) return value;
  if (typeof (value as { subscribe?: unknown }).subscribe !== 'function') return value;
  const { isObservable, lastValueFrom } = await import('rxjs');
  return isObservable(value) ? lastValueFrom(value) : value;
}

/** A place in a list of values: an element, or a property of an element. */
export type Place = readonly [index: number, key?: string | number];

/**
 * The places of `Buffer`s, which structured clone turns into a plain `Uint8Array` with another
 * `toString()`. A `Buffer` that is nested more deeply is not found.
 */
export function buffersIn(values: readonly unknown[]): Place[] {
  const places: Place[] = [];
  for (const [index, value] of values.entries()) {
    if (Buffer.isBuffer(value)) places.push([index]);
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) continue;
    // Object.entries() would create a string for each element of a long list.
    const parts = Array.isArray(value) ? value.entries() : Object.entries(value);
    for (const [key, part] of parts) if (Buffer.isBuffer(part)) places.push([index, key]);
  }
  return places;
}

/** Turns each `Uint8Array` at `places` into a `Buffer` again. */
export function restoreBuffers<T extends unknown[]>(values: T, places: readonly Place[]): T {
  for (const [index, key] of places) {
    const holder = (key === undefined ? values : values[index]) as Record<string | number, unknown>;
    const at = key ?? index;
    const bytes = holder[at];
    // Structured clone loses the properties of a Map, an error and others.
    if (!(bytes instanceof Uint8Array)) continue;
    holder[at] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  return values;
}
