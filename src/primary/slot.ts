import type { FailureCause, WorkerExit } from '../snapshot/index.js';
import { type FailureHistory, NO_FAILURES } from './policies/restart.policy.js';
import type { WorkerHandle } from './worker-handle.js';

/** A numbered place for a worker, and what is remembered of those that held it. */
export class Slot {
  /** The worker that serves this slot, or is about to. */
  current: WorkerHandle | undefined;
  /** Workers on their way out; the slot may already have another. */
  readonly retiring = new Set<WorkerHandle>();
  failures: FailureHistory = NO_FAILURES;
  degraded = false;
  lastExit: WorkerExit | null = null;
  readonly restarts = new Map<FailureCause, number>();
  restartTimer: NodeJS.Timeout | undefined;
  /** Requests served by workers of this slot that are gone. */
  #retiredRequests = 0;

  constructor(readonly index: number) {}

  /** Every process of this slot that is still there. */
  get workers(): readonly WorkerHandle[] {
    return [...this.retiring, ...(this.current ? [this.current] : [])];
  }

  /** Requests served in this slot since the primary started. */
  get requestsTotal(): number {
    return this.workers.reduce(
      (sum, worker) => sum + (worker.stats?.requestsTotal ?? 0),
      this.#retiredRequests,
    );
  }

  get ready(): boolean {
    return this.current?.state === 'ready';
  }

  /** The worker leaves its place; whoever comes next may take it. */
  retire(worker: WorkerHandle): void {
    if (this.current === worker) this.current = undefined;
    this.retiring.add(worker);
  }

  /** The process has ended: keep what it had counted. */
  remove(worker: WorkerHandle): void {
    if (this.current === worker) this.current = undefined;
    this.retiring.delete(worker);
    this.#retiredRequests += worker.stats?.requestsTotal ?? 0;
  }

  countRestart(cause: FailureCause): void {
    this.restarts.set(cause, (this.restarts.get(cause) ?? 0) + 1);
  }
}
