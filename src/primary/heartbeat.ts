import type { WorkerMessage } from '../ipc/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import { isHung, isTickLate } from './policies/heartbeat.policy.js';
import type { WorkerHandle } from './worker-handle.js';

/**
 * Pings workers and finds those that stopped answering. One ping is
 * outstanding at most: a worker that is behind is not given more to read.
 */
export class Heartbeat {
  #seq = 0;
  #lastTickAt = performance.now();

  constructor(private readonly options: ResolvedClusterOptions['heartbeat']) {}

  /** One round: returns the workers that are hung, and pings the rest. */
  tick(workers: readonly WorkerHandle[], now: number): WorkerHandle[] {
    const late = isTickLate(this.#lastTickAt, now, this.options.intervalMs);
    this.#lastTickAt = now;
    const ready = workers.filter((worker) => worker.state === 'ready');
    // After a late tick the answers may lie unread in our own queue: a fresh window for all.
    if (late) for (const worker of ready) if (worker.ping) worker.ping.sentAt = now;
    const hung = ready.filter((worker) =>
      isHung(worker.ping, worker.debugged, now, this.options.timeoutMs),
    );
    for (const worker of workers) {
      if (worker.state !== 'ready' && worker.state !== 'draining') continue;
      if (worker.ping !== undefined) continue;
      worker.ping = { seq: ++this.#seq, sentAt: now };
      worker.send({ type: 'ping', seq: this.#seq });
    }
    return hung;
  }

  /** A worker answered. An answer to another ping than the outstanding one is late: dropped. */
  pong(worker: WorkerHandle, message: WorkerMessage & { type: 'pong' }, now: number): void {
    if (worker.ping?.seq !== message.seq) return;
    worker.ping = undefined;
    worker.seenAt = now;
    worker.stats = message.stats;
    worker.debugged = message.debugged;
  }
}
