import type { BlockReport } from '../../contract/messages.js';
import { isHung, isTickLate, PING_INTERVAL_MS } from '../policies/heartbeat.policy.js';
import type { Worker } from '../cluster-state.js';
import type { WorkerEventOf } from '../cluster-event.js';
import type { Step } from '../step.js';
import { condemn } from './workers.js';

/** Above this utilization, a late tick is attributed to the primary's own event loop. */
const BUSY_UTILIZATION = 0.5;

/**
 * A heartbeat round: kills the workers that are hung, and pings the rest. A worker has at most one
 * unanswered ping, so that unread pings do not add up.
 */
export function beat(step: Step, eventLoopUtilization: number): void {
  const { lastBeatAt } = step.state;
  const { hangTimeoutMs } = step.options;
  const lateMs = step.now - lastBeatAt - PING_INTERVAL_MS;
  if (lateMs >= hangTimeoutMs) tellDelay(step, lateMs, eventLoopUtilization);
  const late = isTickLate(lastBeatAt, step.now);
  step.set({ lastBeatAt: step.now });
  for (const worker of step.state.workers.values()) {
    // After a late round answers may be unread in the primary's queue, so all timeouts begin again.
    if (late) grantFreshWindow(step, worker);
    if (worker.state === 'starting') continue;
    if (worker.state === 'ready') killIfHung(step, worker.id);
    if (worker.ping === undefined) ping(step, worker);
  }
}

/** The event loop is blocked. The worker is judged when the timeout ends, not at the next round. */
export function onBlocked(step: Step, worker: Worker, report: BlockReport): void {
  noteBlock(step, worker, report);
  const leftMs = Math.max(step.options.hangTimeoutMs - report.forMs, 0);
  if (Number.isFinite(leftMs)) step.armFor(worker, 'block-overdue', leftMs);
}

/** Keeps the watchdog's report, which is added to the report of the worker's end. */
export function noteBlock(step: Step, worker: Worker, report: BlockReport): void {
  step.change(worker, { block: { report, since: step.now - report.forMs } });
}

/** The event loop runs again. The timeout begins again, because the ping may be read late. */
export function onResumed(step: Step, worker: Worker): void {
  step.disarm({ type: 'block-overdue', worker: worker.id });
  grantFreshWindow(step, step.change(worker, { block: undefined }));
}

export function onBlockOverdue(step: Step, { id }: Worker): void {
  if (!isTickLate(step.state.lastBeatAt, step.now)) killIfHung(step, id);
}

/** Handles the answer to a ping. A late answer to an earlier ping is dropped. */
export function onPong(step: Step, worker: Worker, { seq, debugged }: WorkerEventOf<'pong'>): void {
  if (seq !== worker.ping?.seq) return;
  step.change(worker, { ping: undefined, debugged: debugged ?? worker.debugged });
}

function killIfHung(step: Step, id: number): void {
  const { hangTimeoutMs } = step.options;
  const worker = step.worker(id)!;
  const { ping: pinged, block, debugged, condemned } = worker;
  // The worker has been killed already, and `exit-overdue` handles the rest.
  if (condemned !== undefined) return;
  const silence = { pingSentAt: pinged?.sentAt, blockedSince: block?.since, debugged };
  if (!isHung(silence, step.now, hangTimeoutMs)) return;
  // Only SIGKILL works: a blocked event loop reads no message and runs no handler.
  const detail = `it did not answer for ${hangTimeoutMs} ms (hangTimeoutMs) and was killed`;
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
  // While a process is stopped, the time counts as what it did before, which is nearly always
  // waiting. So a low utilization does not rule out a stop.
  const cause =
    eventLoopUtilization > BUSY_UTILIZATION
      ? 'its own event loop was blocked, or the process was stopped'
      : 'the machine was suspended or overloaded, or the process was stopped';
  step.emit('warning', {
    message: `the primary was late by ${(lateMs / 1_000).toFixed(1)} s, more than ${step.options.hangTimeoutMs} ms (hangTimeoutMs): ${cause}; no worker is judged by that time`,
  });
}
