import { ClusterWorkersFailedError } from '../../contract/errors/errors.js';
import type { BlockReport } from '../../contract/messages.js';
import type { ClusterEventMap } from '../../contract/log/events.js';
import type { FailureCause, WorkerExit } from '../../contract/snapshot/types.js';
import type { WorkerEventOf } from '../input.js';
import {
  candidateOf,
  type ClusterState,
  type DrainingWorker,
  isWanted,
  type LiveWorker,
  type ReadyWorker,
  type Slot,
  wantedSlots,
  type Worker,
} from '../cluster-state.js';
import {
  classifyFailure,
  describeExit,
  type ProcessExit,
  recordFailure,
} from '../policies/failure.policy.js';
import { releaseFailed } from '../replace/reload.js';
import { loseCandidate, noLongerAwait } from '../replace/replacement.js';
import { giveUp, noteBadEnd } from '../shutdown.js';
import { EXIT_TIMEOUT_MS, type Step } from '../step.js';
import {
  clearSlot,
  countRestart,
  drainAs,
  inWords,
  killFailed,
  noteBootError,
  patienceMs,
  scheduleRestart,
} from './worker-actions.js';

type Fatal = WorkerEventOf<'fatal'>;
type Exited = WorkerEventOf<'exited'>;

export function noteFatal(step: Step, worker: Worker, { error, requests }: Fatal): void {
  step.change(worker, { error: worker.error ?? error, requests, fatal: true });
}

/** Something in the worker called `process.exit()`. */
export function noteExiting(step: Step, worker: Worker, event: WorkerEventOf<'exiting'>): void {
  if (!worker.fatal) step.change(worker, { requests: event.requests });
}

/** The worker drains by itself after an uncaught error. Its slot restarts without waiting for the exit. */
export function failSoon(step: Step, worker: ReadyWorker, { error, requests }: Fatal): void {
  const failing = step.change(worker, { error, requests, fatal: true });
  const detail = 'drained after an uncaught error';
  drainAs(step, { ...failing, failure: worker.failure ?? { cause: 'crash', detail } }, undefined);
  step.armFor(worker, 'stop-overdue', patienceMs(step.options));
  step.emit('worker-failing', { worker: worker.id, error, requests });
  recover(step, failing, 'crash', inWords(error));
}

/** An uncaught error of a worker that was already draining. It counts as a crash. */
export function failLate(step: Step, worker: DrainingWorker, event: Fatal): void {
  const { error, requests } = event;
  // Only the first error counts, because later errors follow from it.
  if (!worker.fatal) {
    const detail = `uncaught error while draining: ${inWords(error)}`;
    step.change(worker, { error, failure: worker.failure ?? { cause: 'crash', detail } });
    step.emit('worker-failing', { worker: worker.id, error, requests });
  }
  noteFatal(step, step.worker(worker.id)!, event);
}

export function noteError(step: Step, worker: Worker, event: WorkerEventOf<'channel-error'>): void {
  // Channel errors are normal while a worker exits. The event `exited` follows.
  step.change(worker, { error: worker.error ?? event.error });
}

export function onChannelBroken(
  step: Step,
  worker: Worker,
  { error }: WorkerEventOf<'channel-broken'>,
): void {
  const detail = `its channel is broken (${error.message}) and it was killed`;
  killFailed(step, worker, 'crash', detail);
}

/** Abandons a process that does not end after SIGKILL: neither its slot nor a shutdown waits for it. */
export function abandon(step: Step, { id }: Worker): void {
  const message = `did not end within ${EXIT_TIMEOUT_MS} ms of SIGKILL and was abandoned: it is stuck in an uninterruptible system call; check that its disks and network file systems respond`;
  step.emit('warning', { message, worker: id });
  step.do({ type: 'abandon', worker: id });
}

/** A worker exited without being asked. Its slot gets a new worker. A cluster that never served may give up. */
export function exitUnasked(step: Step, worker: LiveWorker, event: Exited): void {
  const cause = causeOf(worker, event);
  remove(step, worker, cause, event);
  const error = worker.state === 'starting' ? noteBootError(step, worker) : worker.error;
  const end = describeEnd(worker, cause, event.exit);
  emitDied(step, worker, { cause, detail: end, error });
  const detail = worker.error === null ? end : `${end}: ${inWords(worker.error)}`;
  // A process that could not be started (no descriptors, no memory) has neither a code nor a signal.
  const started = event.exit.code !== null || event.exit.signal !== null;
  recover(step, worker, cause, detail, started);
}

export function exitDrained(step: Step, worker: DrainingWorker, event: Exited): void {
  const cause = causeOf(worker, event);
  remove(step, worker, worker.retirement?.cause ?? cause, event);
  const error = worker.readyAt === undefined ? noteBootError(step, worker) : worker.error;
  if (worker.retirement === undefined) {
    // This failure was counted when the error was reported.
    emitDied(step, worker, { cause, detail: describeEnd(worker, cause, event.exit), error });
  } else if (!emitStopped(step, worker, event.exit)) {
    noteBadEnd(step);
  }
  noLongerAwait(step, worker.slot, worker.id);
}

/** A worker has failed. Its slot gets a new worker, or the cluster gives up. */
export function recover(
  step: Step,
  worker: Worker,
  cause: FailureCause,
  detail: string,
  started = true,
): void {
  if (step.state.shutdown !== undefined) return;
  // A slot that loses its candidate still has its own worker, so it needs no restart.
  if (loseCandidate(step, worker, detail) || !isWanted(step.state, worker.slot)) return;
  const readyAt = worker.state === 'starting' ? undefined : worker.readyAt;
  const livedMs = readyAt === undefined ? undefined : step.now - readyAt;
  const failures = recordFailure(step.slotOf(worker).failures, { cause, livedMs, started });
  step.setSlot(worker.slot, { failures });
  countRestart(step, worker.slot, cause);
  releaseFailed(step, worker, cause, detail);
  const reason = reasonToGiveUp(step.state);
  if (reason !== undefined) {
    const unknown = { name: 'Error', message: `${detail}; see its output above` };
    return giveUp(step, new ClusterWorkersFailedError(reason, { cause: worker.error ?? unknown }));
  }
  // If the slot has a candidate, the candidate replaces the failed worker.
  if (candidateOf(step.slotOf(worker)) === undefined) scheduleRestart(step, worker.slot);
}

/**
 * Why the cluster gives up; `undefined` if it does not. It gives up if no worker has become ready in
 * two attempts per slot, counted over all slots. It waits for the first attempt of every slot, which
 * takes at most `readyTimeoutMs`. It also waits for a candidate, whose release may work. Once a
 * worker has become ready, the cluster never gives up.
 */
function reasonToGiveUp(state: ClusterState): string | undefined {
  const { everReady, served, slots, desired } = state;
  const attempts = slots.reduce((sum, { restarts }) => sum + totalOf(restarts), 0);
  if (everReady || attempts < 2 * desired) return undefined;
  const mayBecomeReady = (slot: Slot): boolean =>
    totalOf(slot.restarts) === 0 || candidateOf(slot) !== undefined;
  if (wantedSlots(state).some(mayBecomeReady)) return undefined;
  return served === undefined
    ? `no worker became ready in ${attempts} attempts`
    : `in ${attempts} attempts, every worker ended before its threads had loaded`;
}

function totalOf(restarts: Slot['restarts']): number {
  return Object.values(restarts).reduce((sum, count) => sum + count, 0);
}

function causeOf(worker: Worker, { exit: ended, oomKill }: Exited): FailureCause {
  const { state, failure, fatal } = worker;
  return failure?.cause ?? classifyFailure(ended, { state, oomKill, explained: fatal });
}

function remove(
  step: Step,
  worker: Worker,
  cause: WorkerExit['cause'],
  { exit: ended, at }: Exited,
): void {
  clearSlot(step, worker);
  step.remove(worker);
  const { abortedRequests } = step.slotOf(worker);
  const aborted = worker.state === 'draining' ? (worker.drain?.abortedRequests ?? 0) : 0;
  const lastExit = { cause, ...ended, at };
  step.setSlot(worker.slot, { lastExit, abortedRequests: abortedRequests + aborted });
  step.do({ type: 'gone', worker: worker.id });
}

/** Emits `worker-died` for a worker that was not asked to leave. */
function emitDied(
  step: Step,
  worker: Worker,
  failure: Pick<ClusterEventMap['worker-died'], 'cause' | 'detail' | 'error'>,
): void {
  const blocked = worker.block === undefined ? null : asOf(worker.block, step.now);
  step.emit('worker-died', {
    worker: worker.id,
    ...failure,
    uptimeMs: step.now - worker.startedAt,
    requests: blocked?.requests ?? worker.requests,
    blocked,
  });
}

/** Describes the end of a worker that was not asked to leave. */
function describeEnd(worker: Worker, cause: FailureCause, exit: ProcessExit): string {
  return worker.state === 'draining' && worker.overdue
    ? 'it did not exit in time after an uncaught error and was killed'
    : (worker.failure?.detail ?? describeExit(exit, cause));
}

/** Adds the time since the watchdog's report to the duration of the block. */
function asOf({ report, since }: NonNullable<Worker['block']>, now: number): BlockReport {
  const laterMs = now - since - report.forMs;
  const requests = report.requests.map((each) => ({ ...each, forMs: each.forMs + laterMs }));
  return { ...report, forMs: now - since, requests };
}

/**
 * Emits `worker-stopped` for a worker that was asked to leave.
 *
 * @returns whether the worker ended without a problem.
 */
function emitStopped(step: Step, worker: DrainingWorker, exit: ProcessExit): boolean {
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

function problemOf(worker: DrainingWorker, exit: ProcessExit): string | null {
  if (worker.readyAt === undefined) return null; // a worker that never served may end in any way
  if (worker.overdue) return 'it did not exit in time and was killed';
  if (worker.failure) return worker.failure.detail;
  return worker.drain?.hookError ?? (exit.code === 0 ? null : describeExit(exit, 'crash'));
}
