import type { EmitEvent } from '../events/index.js';
import type { ShutdownOptions } from '../options/index.js';
import type { FailureCause, RetireCause } from '../snapshot/index.js';
import { describeExit, type ProcessExit } from './policies/exit-cause.policy.js';
import type { WorkerHandle } from './worker-handle.js';

/** A worker that is only starting has nothing to finish: it ends at once, or is killed after this. */
const ABANDON_BOOT_MS = 1_000;

/** Time for an exit to travel, on top of what the worker was promised. */
const EXIT_GRACE_MS = 500;

/** Asks a worker to leave, and kills it when it does not. */
export function beginDeparture(
  worker: WorkerHandle,
  cause: RetireCause,
  shutdown: Required<ShutdownOptions>,
  emit: EmitEvent,
): void {
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = shutdown;
  const booting = worker.state === 'starting';
  worker.enter('draining');
  worker.retirement = { cause, since: performance.now() };
  // While it boots its event loop may be busy for long; a signal ends it at once even before it
  // runs anything of ours.
  if (booting) worker.kill('SIGTERM');
  else worker.send({ type: 'drain', cause });
  const patienceMs = booting
    ? ABANDON_BOOT_MS
    : lameDuckMs + drainTimeoutMs + killTimeoutMs + EXIT_GRACE_MS;
  worker.after(patienceMs, () => {
    worker.overdue = true;
    worker.kill('SIGKILL');
  });
  emit('worker-draining', { worker: worker.identity, cause });
}

/**
 * Tells how a worker left that had been asked to.
 *
 * @returns whether it ended as it should.
 */
export function reportDeparture(worker: WorkerHandle, exit: ProcessExit, emit: EmitEvent): boolean {
  const { cause, since } = worker.retirement!;
  const problem = problemOf(worker, exit);
  emit('worker-stopped', {
    worker: worker.identity,
    cause,
    drainMs: performance.now() - since,
    destroyedConnections: worker.drain?.destroyedConnections ?? 0,
    abortedRequests: worker.drain?.abortedRequests ?? 0,
    problem,
  });
  return problem === null;
}

function problemOf(worker: WorkerHandle, exit: ProcessExit): string | null {
  if (worker.readyAt === undefined) return null; // it had not begun: however it ended is well
  if (worker.overdue) return 'it did not end in time and was killed';
  return worker.drain?.hookError ?? (exit.code === 0 ? null : describeExit(exit));
}

/**
 * Tells how a worker ended that nobody had asked to.
 *
 * @returns the end in words.
 */
export function reportFailure(
  worker: WorkerHandle,
  cause: FailureCause,
  exit: ProcessExit,
  emit: EmitEvent,
): string {
  const detail = worker.killReason ?? describeExit(exit);
  const uptimeMs = performance.now() - worker.startedAt;
  emit('worker-died', { worker: worker.identity, cause, detail, uptimeMs, error: worker.error });
  return detail;
}
