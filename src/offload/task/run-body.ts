import { ClusterUncloneableError } from '../../contract/errors/index.js';
import type { Class } from '../../contract/options/module.js';
import type { RunResult } from '../run/runner.interface.js';
import { buffersIn, restoreBuffers } from './buffers.js';
import { type CarriedContexts, runInContexts } from './carry-context.js';
import { instancesIn, restoreInstances } from './instances.js';
import { describeError, restoreError } from './task-error.js';

/**
 * Runs the body of a task and prepares its result or error to be copied between threads. Never rejects.
 *
 * @param name the name of the task.
 * @param contexts a copy of the caller's contexts.
 */
export async function runBody(
  name: string,
  body: () => unknown,
  contexts: CarriedContexts | undefined,
): Promise<RunResult> {
  const types: Class[] = [];
  try {
    const value = await runInContexts(contexts, async () => lastValueOf(await body()));
    // A result that cannot be copied would end the thread where piscina sends it.
    if (typeof value !== 'string') cloneOf(name, value);
    const instances = instancesIn(value, types);
    const buffers = buffersIn([value]);
    return { ok: true, value, buffers, ...(types.length > 0 && { instances, types }) };
  } catch (thrown) {
    return { ok: false, error: describeError(thrown, types), ...(types.length > 0 && { types }) };
  }
}

/** The result of a call, as the task returned it. @throws the error of the task, as it was thrown. */
export function resultOf(result: RunResult): unknown {
  if (!result.ok) throw restoreError(result.error, result.types);
  const { value, buffers, instances = [], types = [] } = result;
  restoreInstances(value, instances, types);
  return restoreBuffers([value], buffers)[0];
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

/** The last value of an Observable (Nest also responds with the last); of any other value, the value itself. */
async function lastValueOf(value: unknown): Promise<unknown> {
  if (typeof value !== 'object' || value === null) return value;
  if (typeof (value as { subscribe?: unknown }).subscribe !== 'function') return value;
  const { isObservable, lastValueFrom } = await import('rxjs');
  return isObservable(value) ? lastValueFrom(value) : value;
}
