import { ClusterWorkersFailedError } from '../../contract/errors/index.js';
import type { BlockReport } from '../../contract/messages.js';
import type { ClusterEventMap } from '../../contract/log/events.js';
import type { FailureCause, WorkerExit } from '../../contract/snapshot/index.js';
import { classifyFailure, describeExit, type ProcessExit } from '../policies/exit-cause.policy.js';
import { recordFailure } from '../policies/restart.policy.js';
import { noteBootError } from './boot-errors.js';
import type { WorkerEventOf } from '../cluster-event.js';
import type { ClusterState, DrainingWorker, LiveWorker, Slot, Worker } from '../cluster-state.js';
import { inWords, emitStopped } from './retire.js';
import { releaseFailed } from '../replace/reload.js';
import { loseCandidate, noLongerAwait } from '../replace/replacement.js';
import { countRestart, scheduleRestart } from './restart-slot.js';
import { giveUp, noteBadEnd } from '../shutdown.js';
import type { Step } from '../step.js';
import { candidateOf, isWanted, clearSlot, wantedSlots } from './workers.js';

/** A worker exited without being asked: its slot gets a new worker, or a cluster that never served ends. */
export function exitUnasked(step: Step, worker: LiveWorker, event: WorkerEventOf<'exited'>): void {
  const cause = causeOf(worker, event);
  remove(step, worker, cause, event);
  const error = worker.state === 'starting' ? noteBootError(step, worker) : worker.error;
  const end = describeEnd(worker, cause, event.exit);
  emitDied(step, worker, { cause, detail: end, error });
  const detail = worker.error === null ? end : `${end}: ${inWords(worker.error)}`;
  // Starting a process needs free descriptors and memory. One that did not start has no exit.
  const started = event.exit.code !== null || event.exit.signal !== null;
  recover(step, worker, cause, detail, started);
}

export function exitDrained(
  step: Step,
  worker: DrainingWorker,
  event: WorkerEventOf<'exited'>,
): void {
  const cause = causeOf(worker, event);
  remove(step, worker, worker.retirement?.cause ?? cause, event);
  const error = worker.readyAt === undefined ? noteBootError(step, worker) : worker.error;
  if (worker.retirement === undefined) {
    // This failure was counted when the error was reported.
    emitDied(step, worker, { cause, detail: describeEnd(worker, cause, event.exit), error });
  } else if (!emitStopped(step, worker, event.exit)) {
    noteBadEnd(step);
  }
  noLongerAwait(step, worker);
}

/** A worker has failed: its slot gets a new worker, or the cluster ends. */
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
  noteFailure(step, worker, cause, started);
  countRestart(step, worker.slot, cause);
  releaseFailed(step, worker, cause, detail);
  const reason = reasonToGiveUp(step.state);
  if (reason !== undefined) {
    const unknown = { name: 'Error', message: `${detail}; see its output above` };
    return giveUp(step, new ClusterWorkersFailedError(reason, { cause: worker.error ?? unknown }));
  }
  // If the slot has a candidate, the candidate replaces the failed worker.
  if (candidateOf(step.state, worker.slot) === undefined) scheduleRestart(step, worker.slot);
}

function noteFailure(step: Step, worker: Worker, cause: FailureCause, started: boolean): void {
  const readyAt = worker.state === 'starting' ? undefined : worker.readyAt;
  const livedMs = readyAt === undefined ? undefined : step.now - readyAt;
  const failure = { cause, livedMs, started };
  const failures = recordFailure(step.slotOf(worker).failures, failure);
  step.setSlot(worker.slot, { failures });
}

/**
 * Why the cluster cannot go on, or `undefined` if it can. It gives up if no worker has become ready
 * in two attempts per slot, counted over all slots. But it waits for the first attempt of every slot,
 * which ends at `readyTimeoutMs` at the latest. It also waits for a candidate, which may run a
 * release that works. Once a worker has become ready, the cluster never gives up.
 */
function reasonToGiveUp(state: ClusterState): string | undefined {
  const { everReady, served, slots, desired } = state;
  const attempts = slots.reduce((sum, { restarts }) => sum + totalOf(restarts), 0);
  if (everReady || attempts < 2 * desired) return undefined;
  const mayBecomeReady = ({ index, restarts }: Slot): boolean =>
    totalOf(restarts) === 0 || candidateOf(state, index) !== undefined;
  if (wantedSlots(state).some(mayBecomeReady)) return undefined;
  return served === undefined
    ? `no worker became ready in ${attempts} attempts`
    : `no worker stayed up until its threads had loaded, in ${attempts} attempts`;
}

function totalOf(restarts: Slot['restarts']): number {
  return Object.values(restarts).reduce((sum, count) => sum + count, 0);
}

function causeOf(worker: Worker, { exit: ended, oomKill }: WorkerEventOf<'exited'>): FailureCause {
  const { state, failure, fatal } = worker;
  return failure?.cause ?? classifyFailure(ended, { state, oomKill, explained: fatal });
}

function remove(
  step: Step,
  worker: Worker,
  cause: WorkerExit['cause'],
  { exit: ended, at }: WorkerEventOf<'exited'>,
): void {
  clearSlot(step, worker);
  step.remove(worker);
  const { abortedRequests } = step.slotOf(worker);
  const aborted = worker.state === 'draining' ? (worker.drain?.abortedRequests ?? 0) : 0;
  step.setSlot(worker.slot, {
    lastExit: { cause, ...ended, at },
    abortedRequests: abortedRequests + aborted,
  });
  step.do({ type: 'gone', worker: worker.id });
}

/** Emits the event for the end of a worker that had not been asked to leave. */
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

/** Describes the end of a worker that had not been asked to leave. */
function describeEnd(worker: Worker, cause: FailureCause, exit: ProcessExit): string {
  return worker.state === 'draining' && worker.overdue
    ? 'it did not exit in time after an uncaught error and was killed'
    : (worker.failure?.detail ?? describeExit(exit, cause));
}

/** Adds the time that has passed since the watchdog made its report of the block. */
function asOf({ report, since }: NonNullable<Worker['block']>, now: number): BlockReport {
  const laterMs = now - since - report.forMs;
  const requests = report.requests.map((each) => ({ ...each, forMs: each.forMs + laterMs }));
  return { ...report, forMs: now - since, requests };
}
