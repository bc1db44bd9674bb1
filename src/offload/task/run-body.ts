import { ClusterUncloneableError } from '../../contract/errors/index.js';
import { type CarriedContexts, runInContexts } from './carry-context.js';
import type { Class } from '../../contract/options/module.js';
import { findUncloneable } from './cloneable.js';
import { instancesIn } from './instances.js';
import { contentsOf } from './parcel.js';
import type { RunResult } from './runner.interface.js';
import { describeError } from './task-error.js';

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
  try {
    return await runInContexts(contexts, () => valueOf(name, body));
  } catch (thrown) {
    const types: Class[] = [];
    const error = describeError(thrown, types);
    return { ok: false, error, ...(types.length > 0 && { types }) };
  }
}

async function valueOf(name: string, body: () => unknown): Promise<RunResult> {
  const value = await lastValueOf(await body());
  const obstacle = findUncloneable(value, 'result');
  if (obstacle === undefined) {
    const types: Class[] = [];
    const instances = instancesIn(value, types);
    const { buffers } = contentsOf([value]);
    return { ok: true, value, buffers, ...(types.length > 0 && { instances, types }) };
  }
  throw new ClusterUncloneableError(
    `${name}: the result cannot be copied from its thread: ${obstacle}; return plain data (what structuredClone() takes; a StreamableFile is made in the handler, of bytes that come from a provider)`,
  );
}

/** The last value of an Observable (Nest also responds with the last); of any other value, the value itself. */
async function lastValueOf(value: unknown): Promise<unknown> {
  if (typeof value !== 'object' || value === null) return value;
  if (typeof (value as { subscribe?: unknown }).subscribe !== 'function') return value;
  const { isObservable, lastValueFrom } = await import('rxjs');
  return isObservable(value) ? lastValueFrom(value) : value;
}
