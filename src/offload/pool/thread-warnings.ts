import { existsSync } from 'node:fs';
import { ENTRY } from './pool-thread.js';
import type { ThreadPlan } from '../thread/plan.js';
import type { ThreadReport } from '../thread/thread-host.js';

/** A thread that has not loaded by then is worth a word. */
const SLOW_MS = 10_000;

/** Why a bundle can have no threads; `undefined` where their file is there. */
export function missingEntry(): string | undefined {
  if (existsSync(ENTRY)) return undefined;
  return (
    `nestjs-cluster is part of a bundle (there is no ${ENTRY}), and threads cannot be started from there; ` +
    `leave it and the app's classes out of the bundle (build with tsc or SWC alone), or set CLUSTER_OFFLOAD=inline`
  );
}

/** Why a thread that ended while it loaded cannot do its work. */
export function endedWhileLoading(plan: ThreadPlan, error: unknown): string {
  return `a thread ended while it loaded ${filesOf(plan)} (${String(error)}); the code that runs at import must not end it: no process.exit() there`;
}

/** The files that threads import, in words. */
function filesOf({ tasks }: ThreadPlan): string {
  return [...new Set(tasks.map(({ file }) => file))].join(', ');
}

/** Says that a thread is slow to load. */
export function warnWhileSlow(
  report: Promise<ThreadReport>,
  plan: ThreadPlan,
  warn: (message: string) => void,
): void {
  const slow = setTimeout(() => {
    warn(
      `threads have not loaded ${filesOf(plan)} after ${SLOW_MS / 1_000} s; the code that runs at import, and offload.module, must come to an end in a thread too`,
    );
  }, SLOW_MS).unref();
  const stop = (): void => clearTimeout(slow);
  report.then(stop, stop);
}
