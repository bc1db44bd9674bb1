import type { RestartOptions } from '../options/index.js';
import type { FailureCause, WorkerExit } from '../snapshot/index.js';
import {
  decideRestart,
  type Failure,
  type FailureHistory,
  NO_FAILURES,
  recordFailure,
  type RestartDecision,
} from './policies/restart.policy.js';
import type { WorkerHandle } from './worker-handle.js';

/** A numbered place for a worker, and what is remembered of those that held it. */
export class Slot {
  /** The worker that serves this slot, or is about to. */
  current: WorkerHandle | undefined;
  /** Workers on their way out; the slot may already have another. */
  readonly retiring = new Set<WorkerHandle>();
  failures: FailureHistory = NO_FAILURES;
  /** In a crash loop. */
  degraded = false;
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

  /** Remembers a failure and decides when the slot is to be started again. */
  recordFailure(
    failure: Failure,
    now: number,
    options: Required<RestartOptions>,
    random: number,
  ): RestartDecision {
    this.failures = recordFailure(this.failures, failure, now, options);
    const decision = decideRestart(this.failures, now, options, random);
    this.degraded = decision.degraded;
    return decision;
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
