import type { BlockReport } from '../../../contract/ipc/index.js';
import { isHung, isTickLate } from '../policies/heartbeat.policy.js';
import type { ReadyWorker, Worker } from '../cluster-state.js';
import type { WorkerEventOf } from '../cluster-event.js';
import type { Step } from '../step.js';
import { condemn } from './workers.js';

/** A primary whose event loop was busy for more of its time was late by its own doing. */
const BUSY_UTILIZATION = 0.5;

/**
 * One round: kills the workers that are hung, and pings the rest. One ping is
 * outstanding at most: a worker that is behind is not given more to read.
 */
export function beat(step: Step, eventLoopUtilization: number): void {
  const { intervalMs, timeoutMs } = step.options.heartbeat;
  const lateMs = step.now - step.state.lastBeatAt - intervalMs;
  if (lateMs >= timeoutMs) tellDelay(step, lateMs, eventLoopUtilization);
  const late = isTickLate(step.state.lastBeatAt, step.now, intervalMs, timeoutMs);
  step.set({ lastBeatAt: step.now });
  for (const worker of step.state.workers.values()) {
    // After a late round the answers may lie unread in our own queue: a fresh window for all.
    if (late) grantFreshWindow(step, worker);
    if (worker.state === 'starting') continue;
    if (worker.state === 'ready') killIfHung(step, worker.id);
    if (worker.ping === undefined) ping(step, worker);
  }
}

/** The watchdog of a worker says that its event loop is blocked: judged when the time is up, not at the next round. */
export function onBlocked(step: Step, worker: ReadyWorker, report: BlockReport): void {
  noteBlock(step, worker, report);
  const leftMs = Math.max(step.options.heartbeat.timeoutMs - report.forMs, 0);
  if (Number.isFinite(leftMs)) step.armFor(worker, 'block-overdue', leftMs);
}

/** Keeps what blocks a worker that is not judged by that: its end is told with it. */
export function noteBlock(step: Step, worker: Worker, report: BlockReport): void {
  step.change(worker, { block: { report, since: step.now - report.forMs } });
}

/** It goes on. The ping may have waited behind a request, which may block anew: a fresh window. */
export function onResumed(step: Step, worker: Worker): void {
  step.disarm({ type: 'block-overdue', worker: worker.id });
  grantFreshWindow(step, step.change(worker, { block: undefined }));
}

export function onBlockOverdue(step: Step, { id }: ReadyWorker): void {
  const { intervalMs, timeoutMs } = step.options.heartbeat;
  if (!isTickLate(step.state.lastBeatAt, step.now, intervalMs, timeoutMs)) killIfHung(step, id);
}

/**
 * A worker answered. An answer to another ping than the outstanding one is
 * late: dropped. One that does not say to which can only be to that.
 */
export function onPong(step: Step, worker: Worker, { seq, debugged }: WorkerEventOf<'pong'>): void {
  if (worker.ping === undefined || (seq !== undefined && seq !== worker.ping.seq)) return;
  step.change(worker, { ping: undefined, debugged: debugged ?? worker.debugged });
}

function killIfHung(step: Step, id: number): void {
  const { timeoutMs } = step.options.heartbeat;
  const worker = step.worker(id)!;
  const { ping: pinged, block, debugged, condemned } = worker;
  // It has been killed already: `exit-overdue` judges what follows.
  if (condemned !== undefined) return;
  const silence = { pingSentAt: pinged?.sentAt, blockedSince: block?.since, debugged };
  if (!isHung(silence, step.now, timeoutMs)) return;
  // Nothing gentler works: its event loop reads no message and runs no handler.
  const detail = `it did not answer for ${timeoutMs} ms (heartbeat.timeoutMs) and was killed`;
  condemn(step, worker, 'hang', detail);
}

function ping(step: Step, worker: Worker): void {
  const seq = step.state.pings + 1;
  step.set({ pings: seq });
  step.change(worker, { ping: { seq, sentAt: step.now } });
  step.send(worker, { type: 'ping', seq });
}

function grantFreshWindow(step: Step, worker: Worker): void {
  const { ping: pinged, block } = worker;
  if (pinged === undefined && block === undefined) return;
  step.change(worker, {
    ping: pinged && { ...pinged, sentAt: step.now },
    block: block && { ...block, since: step.now },
  });
}

function tellDelay(step: Step, lateMs: number, eventLoopUtilization: number): void {
  // A process that is stopped looks to itself as if it went on all the while with what it did: for events
  // it waits nearly always.
  const cause =
    eventLoopUtilization > BUSY_UTILIZATION
      ? 'its own event loop was blocked, or the process was stopped'
      : 'the machine was suspended or overloaded, or the process was stopped';
  step.emit('warning', {
    message: `the primary was late by ${(lateMs / 1_000).toFixed(1)} s, more than ${step.options.heartbeat.timeoutMs} ms (heartbeat.timeoutMs): ${cause}; no worker is judged by that time`,
  });
}
