import { statSync } from 'node:fs';
import type { ThreadPlan } from '../thread/plan.js';

/** Times of files are exact to less than a ms, and Date.now() is not. */
const CLOCK_ERROR_MS = 1_000;

/** A thread that loads for longer than this causes a warning. */
const SLOW_MS = 10_000;

/** The message about a thread that ended while it loaded. */
export function endedWhileLoading(plan: ThreadPlan, error: unknown): string {
  return `a thread ended while it loaded ${filesOf(plan).join(', ')} (${String(error)}); the code that runs at import must not end it: no process.exit() there`;
}

/** The message about a result that arrives without its class. */
export function lostClass(name: string): string {
  return `a @CpuBound() method returned an instance of ${name}, which arrives as a plain object: no file of the app that is loaded exports the class; export it, or return plain data`;
}

/** The files that threads import. */
function filesOf({ tasks }: ThreadPlan): readonly string[] {
  return [...new Set(tasks.map(({ site }) => site.file))];
}

/**
 * Warns if a file that a new thread imports has changed since this process started, because its
 * threads and its event loop then run different releases.
 *
 * @returns whether a file has changed.
 */
export function warnOfChanges(plan: ThreadPlan, warn: (message: string) => void): boolean {
  const isNew = (file: string): boolean => {
    const changedAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    // A time far ahead of the clock says nothing: the file would count as changed for ever.
    return changedAt > performance.timeOrigin && changedAt < Date.now() + CLOCK_ERROR_MS;
  };
  const changed = filesOf(plan).filter(isNew);
  if (changed.length === 0) return false;
  warn(
    `threads run ${changed.join(', ')} as it is on disk now, which has changed since this process started; reload the cluster, and build each release in a directory of its own`,
  );
  return true;
}

/** Warns if a thread loads slowly. */
export function warnWhileSlow(
  report: Promise<unknown>,
  plan: ThreadPlan,
  warn: (message: string) => void,
): void {
  const slow = setTimeout(() => {
    warn(
      `threads have not loaded ${filesOf(plan).join(', ')} after ${SLOW_MS / 1_000} s; the code that runs at import, and offload.module, must come to an end in a thread too, unless the machine is only overloaded`,
    );
  }, SLOW_MS).unref();
  const stop = (): void => clearTimeout(slow);
  report.then(stop, stop);
}
