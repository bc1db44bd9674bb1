import { ClusterUncloneableError } from '../../contract/errors/errors.js';
import type { Class } from '../../contract/options/module.js';
import { describeError, ownClassOf, restoreError, type TaskError } from './task-error.js';
import { runInTrace, type TraceHeaders } from './trace-context.js';

/** The result or error of a call, in the thread. */
export type RunResult =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** The Buffers in `[value]`. */
      readonly buffers: readonly Place[];
      /** The class of the value or of an array's first element, if structured clone loses the class. */
      readonly className?: string;
    }
  | {
      readonly ok: false;
      readonly error: TaskError;
      /** The class of the error, if the app declares it. */
      readonly type?: Class | undefined;
    };

/**
 * Runs the body of a task. Converts its result or error to a form that can be cloned. Never rejects.
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
    // If Piscina sent a result that cannot be cloned, the thread would die.
    if (typeof value !== 'string') cloneOf(name, value);
    const className = classNameOf(Array.isArray(value) ? value[0] : value);
    return { ok: true, value, buffers: buffersIn([value]), ...(className && { className }) };
  } catch (thrown) {
    return { ok: false, error: describeError(thrown), type: ownClassOf(thrown) };
  }
}

/** Restores the task's return value. @throws the task's error. */
export function resultOf(result: RunResult): unknown {
  if (!result.ok) throw restoreError(result.error, result.type);
  return restoreBuffers([result.value], result.buffers)[0];
}

/**
 * Copies an argument or a result, as for another thread.
 *
 * @throws ClusterUncloneableError for any error of structured clone, such as a TypeError for a
 *   stream or a RangeError for a value nested too deeply.
 */
export function cloneOf<T>(name: string, value: T): T {
  try {
    return structuredClone(value);
  } catch (cause) {
    throw new ClusterUncloneableError(
      `${name}: an argument or the result cannot be copied between threads: ${(cause as Error).message}; pass and return plain data, which structuredClone() can copy`,
      { cause },
    );
  }
}

/** The class of a value, if structured clone would turn the value into a plain object. */
function classNameOf(value: unknown): string | undefined {
  if (Object.prototype.toString.call(value) !== '[object Object]') return undefined;
  const { constructor } = (Object.getPrototypeOf(value) ?? {}) as Partial<object>;
  return constructor === Object ? undefined : constructor?.name;
}

/** The last value of an Observable, as in a Nest response. Returns any other value unchanged. */
async function lastValueOf(value: unknown): Promise<unknown> {
  if (typeof value !== 'object' || value === null) return value;
  if (typeof (value as { subscribe?: unknown }).subscribe !== 'function') return value;
  const { isObservable, lastValueFrom } = await import('rxjs');
  return isObservable(value) ? lastValueFrom(value) : value;
}

/** The path to an element of an array, or to a property of an element. */
export type Place = readonly [index: number, key?: string | number];

/**
 * Finds Buffers, because structured clone turns each into a `Uint8Array`, whose `toString()`
 * differs. Does not find Buffers nested deeper than a `Place`.
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

/** Converts each `Uint8Array` at `places` back to a `Buffer`. */
export function restoreBuffers<T extends unknown[]>(values: T, places: readonly Place[]): T {
  for (const [index, key] of places) {
    const holder = (key === undefined ? values : values[index]) as Record<string | number, unknown>;
    const at = key ?? index;
    const bytes = holder[at];
    // The property may be missing, because structured clone drops properties, for example of Maps and errors.
    if (!(bytes instanceof Uint8Array)) continue;
    holder[at] = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  return values;
}
