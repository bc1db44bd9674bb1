import type { BlockReport } from '../../contract/messages.js';
import type { Worker } from '../cluster-state.js';
import type { WorkerEventOf } from '../input.js';
import type { Step } from '../step.js';
import { killFailed } from './worker-actions.js';

/** The time between two pings. `/health` shows values from the last ping. A shorter time costs CPU in idle workers. */
export const PING_INTERVAL_MS = 1_000;

/**
 * Whether the primary's own tick came too late (suspend, SIGSTOP, a blocked primary). After a late
 * tick, workers' answers may still be unread, so no worker may be killed as hung.
 */
export function isTickLate(lastTickAt: number, now: number): boolean {
  return now - lastTickAt > 2 * PING_INTERVAL_MS;
}

/** Above this utilization, a late tick is attributed to the primary's own event loop. */
const BUSY_UTILIZATION = 0.5;

/**
 * A heartbeat round: kills hung workers, and pings the others. A worker has at most one unanswered
 * ping, so that unread pings do not accumulate.
 */
export function beat(step: Step, eventLoopUtilization: number): void {
  const { lastBeatAt } = step.state;
  const { hangTimeoutMs } = step.options;
  const lateMs = step.now - lastBeatAt - PING_INTERVAL_MS;
  if (lateMs >= hangTimeoutMs) warnOfDelay(step, lateMs, eventLoopUtilization);
  const late = isTickLate(step.state.lastBeatAt, step.now);
  step.set({ lastBeatAt: step.now });
  for (const worker of step.state.workers.values()) {
    // After a late round, answers may still be unread, so all timeouts start again.
    if (late) restartTimeout(step, worker);
    if (worker.state === 'starting') continue;
    if (worker.state === 'ready') killIfHung(step, worker.id);
    if (worker.ping === undefined) ping(step, worker);
  }
}

/** The event loop is blocked. The worker is killed when the timeout ends, not at the next round. */
export function onBlocked(step: Step, worker: Worker, report: BlockReport): void {
  noteBlock(step, worker, report);
  const leftMs = Math.max(step.options.hangTimeoutMs - report.forMs, 0);
  if (Number.isFinite(leftMs)) step.armFor(worker, 'block-overdue', leftMs);
}

/** Stores the watchdog's report, for the event `worker-died`. */
export function noteBlock(step: Step, worker: Worker, report: BlockReport): void {
  step.change(worker, { block: { report, since: step.now - report.forMs } });
}

/** The event loop runs again. Restarts the timeout, because the worker may not have read the ping yet. */
export function onResumed(step: Step, worker: Worker): void {
  step.disarm({ type: 'block-overdue', worker: worker.id });
  restartTimeout(step, step.change(worker, { block: undefined }));
}

export function onBlockOverdue(step: Step, { id }: Worker): void {
  if (!isTickLate(step.state.lastBeatAt, step.now)) killIfHung(step, id);
}

/** Handles the answer to a ping. A late answer to an earlier ping is dropped. */
export function onPong(step: Step, worker: Worker, { seq, debugged }: WorkerEventOf<'pong'>): void {
  if (seq !== worker.ping?.seq) return;
  step.change(worker, { ping: undefined, debugged: debugged ?? worker.debugged });
}

/**
 * Kills a worker that has not answered a ping for `hangTimeoutMs`, or has been blocked that long. A
 * block may begin before the ping. A debugger may stop the event loop on purpose.
 */
function killIfHung(step: Step, id: number): void {
  const { hangTimeoutMs } = step.options;
  const worker = step.worker(id)!;
  const { ping: pinged, block, debugged, failure } = worker;
  // If the worker has been killed already, `exit-overdue` handles the rest.
  if (pinged === undefined || debugged || failure !== undefined) return;
  if (step.now - Math.min(pinged.sentAt, block?.since ?? Infinity) < hangTimeoutMs) return;
  // Only SIGKILL works: a blocked event loop reads no message and runs no handler.
  const detail = `it did not answer for ${hangTimeoutMs} ms (hangTimeoutMs) and was killed`;
  killFailed(step, worker, 'hang', detail);
}

function ping(step: Step, worker: Worker): void {
  const seq = step.state.pings + 1;
  step.set({ pings: seq });
  step.change(worker, { ping: { seq, sentAt: step.now } });
  step.send(worker, { type: 'ping', seq });
}

function restartTimeout(step: Step, worker: Worker): void {
  const { ping: pinged, block } = worker;
  if (pinged === undefined && block === undefined) return;
  step.change(worker, {
    ping: pinged && { ...pinged, sentAt: step.now },
    block: block && { ...block, since: step.now },
  });
}

function warnOfDelay(step: Step, lateMs: number, eventLoopUtilization: number): void {
  // Node counts a process's stopped time as its previous activity, usually waiting. So a low
  // utilization does not rule out a stop.
  const cause =
    eventLoopUtilization > BUSY_UTILIZATION
      ? 'its own event loop was blocked, or the process was stopped'
      : 'the machine was suspended or overloaded, or the process was stopped';
  step.emit('warning', {
    message: `the primary was late by ${(lateMs / 1_000).toFixed(1)} s, more than ${step.options.hangTimeoutMs} ms (hangTimeoutMs): ${cause}; all heartbeat timeouts were reset`,
  });
}
