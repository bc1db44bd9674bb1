import type { RestartOptions } from '../options/index.js';
import type { FailureCause, WorkerExit } from '../snapshot/index.js';
import {
  type Failure,
  type FailureHistory,
  NO_FAILURES,
  recordFailure,
} from './policies/restart.policy.js';
import type { WorkerHandle } from './worker-handle.js';

/** A numbered place for a worker, and what is remembered of those that held it. */
export class Slot {
  /** The worker that serves this slot, or is about to. */
  current: WorkerHandle | undefined;
  /** Workers on their way out; the slot may already have another. */
  readonly retiring = new Set<WorkerHandle>();
  failures: FailureHistory = NO_FAILURES;
  lastExit: WorkerExit | null = null;
  readonly restarts = new Map<FailureCause, number>();
  /** Requests served by workers of this slot that are gone. */
  #retiredRequests = 0;
  #startTimer: NodeJS.Timeout | undefined;

  constructor(readonly index: number) {}

  /** Every process of this slot that is still there; the newest last. */
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

  /** In a crash loop. */
  get degraded(): boolean {
    return this.failures.degraded;
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
  remove(worker: WorkerHandle, exit: WorkerExit): void {
    if (this.current === worker) this.current = undefined;
    this.retiring.delete(worker);
    this.#retiredRequests += worker.stats?.requestsTotal ?? 0;
    this.lastExit = exit;
  }

  recordFailure(failure: Failure, now: number, options: Required<RestartOptions>): void {
    this.failures = recordFailure(this.failures, failure, now, options);
  }

  /** Its worker has lived stably: no crash loop any more. What is in the window still counts. */
  recover(): void {
    this.failures = { ...this.failures, degraded: false };
  }

  countRestart(cause: FailureCause): void {
    this.restarts.set(cause, (this.restarts.get(cause) ?? 0) + 1);
  }

  /** Calls `start` after `delayMs`, unless cancelled by then. */
  scheduleStart(delayMs: number, start: () => void): void {
    this.#startTimer = setTimeout(start, delayMs);
  }

  cancelStart(): void {
    clearTimeout(this.#startTimer);
  }
}
