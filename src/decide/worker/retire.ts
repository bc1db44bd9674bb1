import type { ErrorReport } from '../../contract/errors/error-report.js';
import { LEAVE_SIGNAL } from '../../contract/messages.js';
import type { ShutdownOptions } from '../../contract/options/index.js';
import type { RetireCause } from '../../contract/snapshot/index.js';
import { describeExit, type ProcessExit } from '../policies/exit-cause.policy.js';
import { forgetBootErrors } from './boot-errors.js';
import type { WorkerEventOf } from '../cluster-event.js';
import type {
  DrainingWorker,
  LiveWorker,
  ReadyWorker,
  Retirement,
  Worker,
} from '../cluster-state.js';
import type { Step } from '../step.js';
import { clearSlot } from './workers.js';

/** A starting worker has no requests to finish, so it is killed if it has not ended after this time. */
const ABANDON_BOOT_MS = 1_000;

/** Added to the worker's own time to leave, because the primary learns of the exit later. */
const EXIT_GRACE_MS = 500;

/** Asks a worker to leave, and kills it if it has not left in time. */
export function retire(
  step: Step,
  worker: LiveWorker,
  cause: RetireCause,
  signal: NodeJS.Signals = LEAVE_SIGNAL,
): void {
  const retirement = { cause, signal, since: step.now };
  drainAs(step, worker, retirement);
  if (worker.state === 'ready') {
    askToDrain(step, worker, retirement);
  } else {
    // A booting worker may be busy for long and read no message, so it gets a signal. The signal ends
    // it even before any code of this package runs.
    step.kill(worker, 'SIGTERM');
    step.armFor(worker, 'stop-overdue', ABANDON_BOOT_MS);
  }
  step.emit('worker-draining', { worker: worker.id, cause });
}

/** Drains a worker that became ready although it was told to end, because it may serve requests now. */
export function drainAfterAll(step: Step, worker: DrainingWorker): void {
  const { readyAt, retirement } = worker;
  forgetBootErrors(step);
  if (readyAt !== undefined || retirement === undefined) return;
  askToDrain(step, step.change(worker, { readyAt: step.now }), retirement);
}

/** Notes that a worker drains by itself after an uncaught error. */
export function drainAfterError(step: Step, worker: ReadyWorker, error: ErrorReport): void {
  const failure = worker.failure ?? {
    cause: 'crash' as const,
    detail: 'drained after an uncaught error',
  };
  drainAs(step, { ...worker, error, fatal: true, failure }, undefined);
  step.armFor(worker, 'stop-overdue', patienceMs(step.options.shutdown));
  step.emit('worker-failing', { worker: worker.id, error, requests: worker.requests });
}

/** Notes an uncaught error of a worker that was already draining. It counts as a crash. */
export function noteLateError(
  step: Step,
  worker: DrainingWorker,
  { error, requests }: WorkerEventOf<'fatal'>,
): void {
  const failure = worker.failure ?? {
    cause: 'crash' as const,
    detail: `uncaught error while it drained: ${inWords(error)}`,
  };
  step.change(worker, { error, failure });
  step.emit('worker-failing', { worker: worker.id, error, requests });
}

export function killOverdue(step: Step, worker: DrainingWorker): void {
  if (worker.readyAt !== undefined) step.change(worker, { overdue: true });
  step.kill(worker, 'SIGKILL');
}

/**
 * Emits the event for the end of a worker that had been asked to leave.
 *
 * @returns whether the worker ended without a problem.
 */
export function emitStopped(step: Step, worker: DrainingWorker, exit: ProcessExit): boolean {
  const { cause, since } = worker.retirement!;
  const { drain } = worker;
  const problem = problemOf(worker, exit);
  step.emit('worker-stopped', {
    worker: worker.id,
    cause,
    drainMs: step.now - since,
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

function drainAs(step: Step, worker: LiveWorker, retirement: DrainingWorker['retirement']): void {
  clearSlot(step, worker);
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

function askToDrain(step: Step, worker: Worker, { cause, signal }: Retirement): void {
  step.send(worker, { type: 'drain', cause, signal });
  step.armFor(worker, 'stop-overdue', patienceMs(step.options.shutdown));
}

function patienceMs({ lameDuckMs, drainTimeoutMs, killTimeoutMs }: Required<ShutdownOptions>) {
  return lameDuckMs + drainTimeoutMs + killTimeoutMs + EXIT_GRACE_MS;
}

function problemOf(worker: DrainingWorker, exit: ProcessExit): string | null {
  if (worker.readyAt === undefined) return null; // a worker that never served cannot end badly
  if (worker.overdue) return 'it did not exit in time and was killed';
  if (worker.failure) return worker.failure.detail;
  return worker.drain?.hookError ?? (exit.code === 0 ? null : describeExit(exit, 'crash'));
}
