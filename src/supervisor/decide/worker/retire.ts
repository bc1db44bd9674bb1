import { type ErrorReport, LEAVE_SIGNAL } from '../../../contract/ipc/index.js';
import type { ShutdownOptions } from '../../../contract/options/index.js';
import type { RetireCause } from '../../../contract/snapshot/index.js';
import { describeExit, type ProcessExit } from '../policies/exit-cause.policy.js';
import type {
  DrainingWorker,
  ReadyWorker,
  Retirement,
  StartingWorker,
  Worker,
} from '../cluster-state.js';
import type { Step } from '../step.js';
import { vacate } from './workers.js';

/** A worker that is only starting has nothing to finish: it ends at once, or is killed after this. */
const ABANDON_BOOT_MS = 1_000;

/** Time for an exit to travel, on top of what the worker was promised. */
const EXIT_GRACE_MS = 500;

/** Time for a snapshot of the heap: some seconds for each 100 MB, and a client that reads it. */
const SNAPSHOT_MS = 180_000;

/** Asks a worker to leave, and sees to it that it does. */
export function retire(
  step: Step,
  worker: StartingWorker | ReadyWorker,
  cause: RetireCause,
  signal: NodeJS.Signals = LEAVE_SIGNAL,
  snapshotTo?: string,
): void {
  const retirement = { cause, signal, snapshotTo, since: step.now };
  drainAs(step, worker, retirement);
  if (worker.state === 'ready') {
    askToDrain(step, worker, retirement);
  } else {
    // While it boots its event loop may be busy for long: a signal ends it even before it runs
    // anything of ours.
    step.kill(worker, 'SIGTERM');
    step.armFor(worker, 'stop-overdue', ABANDON_BOOT_MS);
  }
  step.emit('worker-draining', { worker: worker.id, cause });
}

/** The cluster stops: nobody waits for a snapshot any longer than for a drain. */
export function hurrySnapshot(step: Step, worker: DrainingWorker): void {
  if (worker.retirement?.snapshotTo === undefined) return;
  step.armFor(worker, 'stop-overdue', patienceMs(step.options.shutdown));
}

/** A worker was to end while it came up, and became ready first. It serves, so it drains. */
export function drainAfterAll(step: Step, worker: DrainingWorker): void {
  const { readyAt, retirement } = worker;
  if (readyAt !== undefined || retirement === undefined) return;
  askToDrain(step, step.change(worker, { readyAt: step.now }), retirement);
}

/** A worker drains of its own accord, because of an error that nobody caught. */
export function collapse(step: Step, worker: ReadyWorker, error: ErrorReport): void {
  const condemned = worker.condemned ?? {
    cause: 'crash' as const,
    detail: 'drained after an error that nobody caught',
  };
  drainAs(step, { ...worker, error, fatal: true, condemned }, undefined);
  step.armFor(worker, 'stop-overdue', patienceMs(step.options.shutdown));
  step.emit('worker-failing', { worker: worker.id, error });
}

/** A worker that was on its way out had an error that nobody caught: it was not well. */
export function noteLateError(step: Step, worker: DrainingWorker, error: ErrorReport): void {
  const condemned = worker.condemned ?? {
    cause: 'crash' as const,
    detail: `an error that nobody caught came while it drained: ${error.name}: ${error.message}`,
  };
  step.change(worker, { error, condemned });
  step.emit('worker-failing', { worker: worker.id, error });
}

/** It was promised a time, and that is over. */
export function killOverdue(step: Step, worker: DrainingWorker): void {
  if (worker.readyAt !== undefined) step.change(worker, { overdue: true });
  step.kill(worker, 'SIGKILL');
}

/**
 * Tells how a worker left that had been asked to.
 *
 * @returns whether it ended as it should.
 */
export function tellDeparture(step: Step, worker: DrainingWorker, exit: ProcessExit): boolean {
  const { cause, since } = worker.retirement!;
  const { drain } = worker;
  const problem = problemOf(worker, exit);
  step.emit('worker-stopped', {
    worker: worker.id,
    cause,
    drainMs: step.now - since,
    unacceptedConnections: drain?.unacceptedConnections ?? 0,
    destroyedConnections: drain?.destroyedConnections ?? 0,
    destroyedWebSockets: drain?.destroyedWebSockets ?? 0,
    abortedRequests: drain?.abortedRequests ?? 0,
    problem,
  });
  return problem === null;
}

export function inWords({ name, message }: ErrorReport): string {
  return `${name}: ${message}`;
}

function drainAs(
  step: Step,
  worker: StartingWorker | ReadyWorker,
  retirement: DrainingWorker['retirement'],
): void {
  vacate(step, worker);
  step.disarmAllOf(worker.id);
  step.enter({
    ...worker,
    state: 'draining',
    readyAt: worker.state === 'ready' ? worker.readyAt : undefined,
    retirement,
    overdue: false,
    drain: undefined,
  });
}

function askToDrain(step: Step, worker: Worker, { cause, signal, snapshotTo }: Retirement): void {
  step.send(worker, { type: 'drain', cause, signal, snapshotTo });
  const snapshotMs = snapshotTo === undefined ? 0 : SNAPSHOT_MS;
  step.armFor(worker, 'stop-overdue', patienceMs(step.options.shutdown) + snapshotMs);
}

function patienceMs({ lameDuckMs, drainTimeoutMs, killTimeoutMs }: Required<ShutdownOptions>) {
  return lameDuckMs + drainTimeoutMs + killTimeoutMs + EXIT_GRACE_MS;
}

function problemOf(worker: DrainingWorker, exit: ProcessExit): string | null {
  if (worker.readyAt === undefined) return null; // it had not begun: however it ended is well
  if (worker.overdue) return 'it did not end in time and was killed';
  if (worker.condemned) return worker.condemned.detail;
  return worker.drain?.hookError ?? (exit.code === 0 ? null : describeExit(exit, 'crash'));
}
