import type { EmitEvent } from '../events/index.js';
import { type BlockReport, type ErrorReport, LEAVE_SIGNAL } from '../ipc/index.js';
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
  signal: NodeJS.Signals = LEAVE_SIGNAL,
): void {
  const booting = worker.state === 'starting';
  worker.enter('draining');
  worker.retirement = { cause, signal, since: performance.now() };
  // While it boots its event loop may be busy for long; a signal ends it at once even before it
  // runs anything of ours.
  if (booting) {
    worker.kill('SIGTERM');
    worker.after(ABANDON_BOOT_MS, () => {
      if (worker.readyAt === undefined) worker.kill('SIGKILL');
    });
  } else {
    worker.send({ type: 'drain', cause, signal });
    killWhenOverdue(worker, patienceMs(shutdown));
  }
  emit('worker-draining', { worker: worker.identity, cause });
}

/** A worker that was to be ended while it came up has become ready meanwhile: it serves, so it drains. */
export function drainAfterAll(
  worker: WorkerHandle,
  now: number,
  shutdown: Required<ShutdownOptions>,
): void {
  if (worker.readyAt !== undefined) return;
  worker.readyAt = now;
  const { cause, signal } = worker.retirement!;
  worker.send({ type: 'drain', cause, signal });
  killWhenOverdue(worker, patienceMs(shutdown));
}

/** A worker drains of its own accord, because of an error that nobody caught. */
export function beginCollapse(
  worker: WorkerHandle,
  shutdown: Required<ShutdownOptions>,
  emit: EmitEvent,
): void {
  worker.enter('draining');
  worker.condemned = { cause: 'crash', detail: 'drained after an error that nobody caught' };
  killWhenOverdue(worker, patienceMs(shutdown));
  emit('worker-failing', { worker: worker.identity, error: worker.error });
}

/** A worker that was on its way out had an error that nobody caught: it was not well. */
export function reportLateError(worker: WorkerHandle, error: ErrorReport, emit: EmitEvent): void {
  worker.error = error;
  worker.condemned ??= {
    cause: 'crash',
    detail: `an error that nobody caught came while it drained: ${error.name}: ${error.message}`,
  };
  emit('worker-failing', { worker: worker.identity, error });
}

function patienceMs({ lameDuckMs, drainTimeoutMs, killTimeoutMs }: Required<ShutdownOptions>) {
  return lameDuckMs + drainTimeoutMs + killTimeoutMs + EXIT_GRACE_MS;
}

function killWhenOverdue(worker: WorkerHandle, ms: number): void {
  worker.after(ms, () => {
    worker.overdue = true;
    worker.kill('SIGKILL');
  });
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
    unacceptedConnections: worker.drain?.unacceptedConnections ?? 0,
    destroyedConnections: worker.drain?.destroyedConnections ?? 0,
    destroyedWebSockets: worker.drain?.destroyedWebSockets ?? 0,
    abortedRequests: worker.drain?.abortedRequests ?? 0,
    problem,
  });
  return problem === null;
}

function problemOf(worker: WorkerHandle, exit: ProcessExit): string | null {
  if (worker.readyAt === undefined) return null; // it had not begun: however it ended is well
  if (worker.overdue) return 'it did not end in time and was killed';
  if (worker.condemned) return worker.condemned.detail;
  return worker.drain?.hookError ?? (exit.code === 0 ? null : describeExit(exit, 'crash'));
}

/**
 * Tells how a worker ended that nobody had asked to.
 *
 * @param error what is told of its last one.
 * @returns the end in words.
 */
export function reportFailure(
  worker: WorkerHandle,
  cause: FailureCause,
  exit: ProcessExit,
  emit: EmitEvent,
  error = worker.error,
): string {
  const detail = describeEnd(worker, cause, exit);
  const { block } = worker;
  const now = performance.now();
  emit('worker-died', {
    worker: worker.identity,
    cause,
    detail,
    uptimeMs: now - worker.startedAt,
    error,
    blocked: block === undefined ? null : asOf(block, now),
  });
  return detail;
}

/** How it ended that nobody had asked to, in words. */
export function describeEnd(worker: WorkerHandle, cause: FailureCause, exit: ProcessExit): string {
  return worker.overdue
    ? 'it did not end in time after an error that nobody caught and was killed'
    : (worker.condemned?.detail ?? describeExit(exit, cause));
}

/** The report came when the block was half as long as it was allowed to be: it went on. */
function asOf({ report, since }: NonNullable<WorkerHandle['block']>, now: number): BlockReport {
  const laterMs = now - since - report.forMs;
  const requests = report.requests.map((each) => ({ ...each, forMs: each.forMs + laterMs }));
  return { ...report, forMs: now - since, requests };
}

/** How it ended and what it last said was wrong. */
export function explain({ error }: WorkerHandle, detail: string): string {
  return error === null ? detail : `${detail}: ${error.name}: ${error.message}`;
}
