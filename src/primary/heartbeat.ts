import type { EmitEvent } from '../events/index.js';
import type { BlockReport, WorkerMessage } from '../ipc/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import { isHung, isTickLate } from './policies/heartbeat.policy.js';
import type { PrimaryMeter } from './primary-meter.js';
import type { WorkerHandle } from './worker-handle.js';

/**
 * Pings workers and finds those that stopped answering. One ping is
 * outstanding at most: a worker that is behind is not given more to read.
 */
export class Heartbeat {
  #seq = 0;
  #lastTickAt = performance.now();

  constructor(
    private readonly options: ResolvedClusterOptions['heartbeat'],
    private readonly emit: EmitEvent,
    /** Measures the primary itself, from round to round. */
    private readonly meter: Pick<PrimaryMeter, 'stats'>,
  ) {}

  /** One round: kills the workers that are hung, and pings the rest. */
  beat(workers: readonly WorkerHandle[], now: number): void {
    this.#reportDelay(now - this.#lastTickAt - this.options.intervalMs);
    for (const worker of this.tick(workers, now)) this.#kill(worker);
  }

  /** A worker that had been silent for that long would have been killed. */
  #reportDelay(lateMs: number): void {
    const { timeoutMs } = this.options;
    if (lateMs < timeoutMs) return;
    // A process that is stopped looks to itself as if it waited for events all the while.
    const cause =
      this.meter.stats().eventLoopUtilization > 0.5
        ? 'its own event loop was blocked'
        : 'the machine was suspended or overloaded, or the process was stopped';
    this.emit('warning', {
      message: `the primary was late by ${(lateMs / 1_000).toFixed(1)} s, more than ${timeoutMs} ms (heartbeat.timeoutMs): ${cause}; no worker is judged by that time`,
    });
  }

  /** Kills a worker that is hung, between two rounds. */
  judge(worker: WorkerHandle, now: number): void {
    if (this.isOverdue(worker, now)) this.#kill(worker);
  }

  #kill(worker: WorkerHandle): void {
    const { timeoutMs } = this.options;
    // Nothing gentler works: its event loop reads no message and runs no handler.
    worker.condemn(
      'hang',
      `it did not answer for ${timeoutMs} ms (heartbeat.timeoutMs) and was killed`,
    );
  }

  /** One round: returns the workers that are hung, and pings the rest. */
  tick(workers: readonly WorkerHandle[], now: number): WorkerHandle[] {
    const late = isTickLate(this.#lastTickAt, now, this.options.intervalMs);
    this.#lastTickAt = now;
    const ready = workers.filter((worker) => worker.state === 'ready');
    // After a late tick the answers may lie unread in our own queue: a fresh window for all.
    if (late) for (const worker of ready) grantFreshWindow(worker, now);
    const hung = ready.filter((worker) => this.#isHung(worker, now));
    for (const worker of workers) {
      if (worker.state !== 'ready' && worker.state !== 'draining') continue;
      if (worker.ping !== undefined) continue;
      worker.ping = { seq: ++this.#seq, sentAt: now };
      worker.send({ type: 'ping', seq: this.#seq });
    }
    return hung;
  }

  /**
   * The watchdog of a worker says that its event loop is blocked.
   *
   * @returns the time after which it is hung if that goes on, in ms.
   */
  blocked(worker: WorkerHandle, report: BlockReport, now: number): number {
    worker.block = { report, since: now - report.forMs };
    return Math.max(this.options.timeoutMs - report.forMs, 0);
  }

  /** It goes on. The ping may have waited behind a request, which may block anew: a fresh window. */
  resumed(worker: WorkerHandle, now: number): void {
    worker.block = undefined;
    grantFreshWindow(worker, now);
  }

  /** Whether a worker is hung, asked between two rounds. */
  isOverdue(worker: WorkerHandle, now: number): boolean {
    if (isTickLate(this.#lastTickAt, now, this.options.intervalMs)) return false;
    return worker.state === 'ready' && this.#isHung(worker, now);
  }

  #isHung({ ping, block, debugged }: WorkerHandle, now: number): boolean {
    return isHung(
      { pingSentAt: ping?.sentAt, blockedSince: block?.since, debugged },
      now,
      this.options.timeoutMs,
    );
  }

  /**
   * A worker answered. An answer to another ping than the outstanding one is
   * late: dropped. One that does not say to which can only be to that.
   */
  pong(worker: WorkerHandle, message: WorkerMessage & { type: 'pong' }, now: number): void {
    if (worker.ping === undefined) return;
    if (message.seq !== undefined && message.seq !== worker.ping.seq) return;
    worker.ping = undefined;
    worker.seenAt = now;
    worker.report(message.stats);
    worker.debugged = message.debugged ?? worker.debugged;
  }
}

function grantFreshWindow(worker: WorkerHandle, now: number): void {
  if (worker.ping) worker.ping.sentAt = now;
  if (worker.block) worker.block.since = now;
}
