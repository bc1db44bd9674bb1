import type { ErrorReport } from '../../contract/errors/error-report.js';
import { LEAVE_SIGNAL } from '../../contract/messages.js';
import type { FailureCause, RetireCause } from '../../contract/snapshot/types.js';
import {
  candidateOf,
  type DrainingWorker,
  isWanted,
  type LiveWorker,
  type Release,
  type Retirement,
  type Slot,
  type Worker,
  type WorkerId,
} from '../cluster-state.js';
import { restartDelayMs } from '../policies/failure.policy.js';
import type { Step } from '../step.js';

/** A worker asked to leave while it starts has no requests, so it is killed after this time. */
const ABANDON_BOOT_MS = 1_000;

/** Added to the worker's own time limit, because the primary notices the exit later. */
const EXIT_GRACE_MS = 500;

/** Starts a process for a slot. The caller makes the new worker the slot's worker or its candidate. */
export function fork(step: Step, slot: number, release: Release): WorkerId {
  const { readyTimeoutMs } = step.options;
  const { mayBeDebugged } = step.settings;
  const id = step.state.forks + 1;
  const printsBootError = mayPrintBootError(step, id, release.generation);
  const jitter = step.random();
  step.set({ forks: id });
  step.enter({
    state: 'starting',
    id,
    slot,
    generation: release.generation,
    startedAt: step.now,
    debugged: mayBeDebugged,
    ping: undefined,
    block: undefined,
    error: null,
    requests: [],
    fatal: false,
    failure: undefined,
    jitter,
    follows: false,
    lapsed: false,
  });
  const { desired: workers } = step.state;
  step.do({ type: 'fork', worker: id, slot, release, workers, printsBootError });
  if (!mayBeDebugged) step.arm({ type: 'ready-overdue', worker: id }, readyTimeoutMs);
  return id;
}

export function startSlot(step: Step, { index, release }: Slot): void {
  step.disarm({ type: 'start-due', slot: index });
  step.setSlot(index, { worker: fork(step, index, release) });
}

/** Removes a worker from its slot, so that the slot may get another worker. */
export function clearSlot(step: Step, worker: Worker): void {
  const { index, worker: current } = step.slotOf(worker);
  if (current === worker.id) step.setSlot(index, { worker: undefined });
}

/** Kills a worker, and stores the reason, because the exit code does not show it. */
export function killFailed(step: Step, worker: Worker, cause: FailureCause, detail: string): void {
  if (worker.failure === undefined) step.change(worker, { failure: { cause, detail } });
  step.kill(worker, 'SIGKILL');
}

/** Starts a new worker in the slot, after a delay that depends on the slot's failures. */
export function scheduleRestart(step: Step, index: number): void {
  const { failures } = step.state.slots[index]!;
  const delayMs = restartDelayMs(failures, step.random());
  const { inARow, degraded } = failures;
  step.emit('worker-restarting', { slot: index, delayMs, failures: inARow, degraded });
  step.arm({ type: 'start-due', slot: index }, delayMs);
}

/** Starts the slot's next worker, if the slot is still wanted and empty. */
export function startWhereNeeded(step: Step, index: number): void {
  const { state } = step;
  const slot = state.slots[index]!;
  if (state.shutdown !== undefined || !isWanted(state, index)) return;
  if (slot.worker === undefined && candidateOf(slot) === undefined) startSlot(step, slot);
}

export function countRestart(step: Step, index: number, cause: FailureCause): void {
  const { restarts } = step.state.slots[index]!;
  step.setSlot(index, { restarts: { ...restarts, [cause]: (restarts[cause] ?? 0) + 1 } });
}

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
    // A starting worker may be too busy to read a message, so it gets a signal. The signal ends the
    // worker even before any code of this package runs.
    step.kill(worker, 'SIGTERM');
    step.armFor(worker, 'stop-overdue', ABANDON_BOOT_MS);
  }
  step.emit('worker-draining', { worker: worker.id, cause });
}

/** Drains a worker that became ready after it was asked to leave, because it may serve requests now. */
export function drainAfterAll(step: Step, worker: DrainingWorker): void {
  const { readyAt, retirement } = worker;
  forgetBootErrors(step);
  if (readyAt !== undefined || retirement === undefined) return;
  askToDrain(step, step.change(worker, { readyAt: step.now }), retirement);
}

export function killOverdue(step: Step, worker: DrainingWorker): void {
  if (worker.readyAt !== undefined) step.change(worker, { overdue: true });
  step.kill(worker, 'SIGKILL');
}

export function inWords({ name, message }: ErrorReport): string {
  return `${name}: ${message}`;
}

export function drainAs(
  step: Step,
  worker: LiveWorker,
  retirement: DrainingWorker['retirement'],
): void {
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
  step.armFor(worker, 'stop-overdue', patienceMs(step.options));
}

export function patienceMs({ shutdown }: Step['options']): number {
  const { lameDuckMs, drainTimeoutMs, killTimeoutMs } = shutdown;
  return lameDuckMs + drainTimeoutMs + killTimeoutMs + EXIT_GRACE_MS;
}

/** Maximum number of remembered errors; the oldest are dropped. An app's errors may all have different messages. */
const MAX_ERRORS = 100;

/**
 * The startup errors of one generation's workers. One worker may print its own error. The primary
 * logs the errors of the other workers, with the stack only the first time.
 */
export interface BootErrors {
  readonly generation: number;
  /** The worker that may print its error, or has printed it. */
  readonly printer: WorkerId | undefined;
  readonly reported: readonly string[];
}

export function mayPrintBootError(step: Step, id: WorkerId, generation: number): boolean {
  // A new reload is a new attempt, so its errors are printed again.
  if (generation > step.state.bootErrors.generation) forgetBootErrors(step, generation);
  const { bootErrors } = step.state;
  if (bootErrors.printer !== undefined) return false;
  step.set({ bootErrors: { ...bootErrors, printer: id } });
  return true;
}

/** Forgets all errors because a worker became ready, so that later errors are printed again. */
export function forgetBootErrors(step: Step, generation = step.state.bootErrors.generation): void {
  step.set({ bootErrors: { generation, printer: undefined, reported: [] } });
}

/** Records and returns the startup error of a worker. A repeated error has no stack. */
export function noteBootError(step: Step, { id, error }: Worker): ErrorReport | null {
  const { bootErrors } = step.state;
  if (error === null) {
    if (bootErrors.printer === id) step.set({ bootErrors: { ...bootErrors, printer: undefined } });
    return null;
  }
  const { name, message, code } = error;
  const key = `${name}: ${message}`;
  if (bootErrors.reported.includes(key)) return { name, message, code, repeated: true };
  const reported = [...bootErrors.reported, key].slice(-MAX_ERRORS);
  step.set({ bootErrors: { ...bootErrors, reported } });
  return error;
}
