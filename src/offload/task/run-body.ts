import { UncloneableValueError } from '../../contract/errors/index.js';
import { type CarriedContexts, runInContexts } from './carry-context.js';
import { findUncloneable } from './cloneable.js';
import { contentsOf } from './parcel.js';
import type { RunResult } from './runner.interface.js';
import { describeError } from './task-error.js';

/**
 * Runs the body of a task where it is to run, and makes of how it ends what can
 * travel. Never rejects.
 *
 * @param contexts a copy of the caller's.
 * @param within runs it, in those contexts.
 */
export async function runBody(
  /** The task's name, for messages. */
  name: string,
  body: () => unknown,
  contexts: CarriedContexts | undefined,
  within: <R>(run: () => Promise<R>) => Promise<R> = (run) => run(),
): Promise<RunResult> {
  try {
    const run = async (): Promise<RunResult> => {
      const value = await settle(await body());
      const obstacle = findUncloneable(value, 'result');
      if (obstacle !== undefined) throw uncloneableResult(name, obstacle);
      return { ok: true, value, buffers: contentsOf([value]).buffers };
    };
    return await runInContexts(contexts, () => within(run));
  } catch (thrown) {
    return { ok: false, error: describeError(thrown) };
  }
}

/** Nest takes an Observable as an answer too: it is its last value. */
async function settle(value: unknown): Promise<unknown> {
  if (typeof value !== 'object' || value === null) return value;
  if (typeof (value as { subscribe?: unknown }).subscribe !== 'function') return value;
  const { isObservable, lastValueFrom } = await import('rxjs');
  return isObservable(value) ? lastValueFrom(value) : value;
}

function uncloneableResult(name: string, obstacle: string): UncloneableValueError {
  return new UncloneableValueError(
    `${name}: the result cannot be copied from its thread: ${obstacle}; return plain data (what structuredClone() takes; a StreamableFile is made in the handler, of bytes that come from a provider)`,
  );
}
