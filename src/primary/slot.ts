import type { RestartOptions } from '../options/index.js';
import type { FailureCause, WorkerExit } from '../snapshot/index.js';
import {
  type Failure,
  type FailureHistory,
  NO_FAILURES,
  recordFailure,
} from './policies/restart.policy.js';
import type { Release } from './release.js';
import type { WorkerHandle } from './worker-handle.js';

/** A numbered place for a worker, and what is remembered of those that held it. */
export class Slot {
  /** The worker that serves this slot, or is about to. */
  current: WorkerHandle | undefined;
  /** The worker that is to take over from `current` once it has proven itself. */
  candidate: WorkerHandle | undefined;
  /** Workers on their way out; the slot may already have another. */
  readonly retiring = new Set<WorkerHandle>();
  failures: FailureHistory = NO_FAILURES;
  lastExit: WorkerExit | null = null;
  readonly restarts = new Map<FailureCause, number>();
  /** Counted by workers of this slot that are gone. */
  readonly #retired = { requestsTotal: 0, rebalancedConnectionsTotal: 0 };
  abortedRequests = 0;
  #startTimer: NodeJS.Timeout | undefined;

  constructor(
    readonly index: number,
    /** What its next worker runs. */
    public release: Release,
  ) {}

  /** Every process of this slot that is still there; the newest last. */
  get workers(): readonly WorkerHandle[] {
    return [...this.retiring, this.current, this.candidate].filter((each) => each !== undefined);
  }

  /** Requests served in this slot since the primary started. */
  get requestsTotal(): number {
    return this.#total('requestsTotal');
  }

  /** Connections whose clients were asked to connect again, since the primary started. */
  get rebalancedConnectionsTotal(): number {
    return this.#total('rebalancedConnectionsTotal');
  }

  #total(name: 'requestsTotal' | 'rebalancedConnectionsTotal'): number {
    return this.workers.reduce(
      (sum, worker) => sum + (worker.stats?.[name] ?? 0),
      this.#retired[name],
    );
  }

  /** In a crash loop. */
  get degraded(): boolean {
    return this.failures.degraded;
  }

  get ready(): boolean {
    return this.current?.state === 'ready' || this.candidate?.state === 'ready';
  }

  /** A process of it is on its way to be ready; else, where none is, the last one has failed. */
  get starting(): boolean {
    return this.current?.state === 'starting' || this.candidate?.state === 'starting';
  }

  /** The worker leaves its place; whoever comes next may take it. */
  retire(worker: WorkerHandle): void {
    this.#vacate(worker);
    this.retiring.add(worker);
  }

  /** The candidate takes the place of the current worker, which it returns. */
  promote(candidate: WorkerHandle, release: Release): WorkerHandle | undefined {
    const predecessor = this.current;
    this.candidate = undefined;
    this.current = candidate;
    this.release = release;
    return predecessor;
  }

  /** The process has ended: keep what it had counted. */
  remove(worker: WorkerHandle, exit: WorkerExit): void {
    this.#vacate(worker);
    this.retiring.delete(worker);
    this.#retired.requestsTotal += worker.stats?.requestsTotal ?? 0;
    this.#retired.rebalancedConnectionsTotal += worker.stats?.rebalancedConnectionsTotal ?? 0;
    this.abortedRequests += worker.drain?.abortedRequests ?? 0;
    this.lastExit = exit;
  }

  #vacate(worker: WorkerHandle): void {
    if (this.current === worker) this.current = undefined;
    if (this.candidate === worker) this.candidate = undefined;
  }

  recordFailure(
    failure: Failure,
    now: number,
    options: Required<RestartOptions>,
    overBudget: boolean,
  ): void {
    this.failures = recordFailure(this.failures, failure, now, options, overBudget);
  }

  /** Its worker has lived well, or is of another release: no crash loop any more. */
  recover(): void {
    this.failures = { ...this.failures, shortLives: 0, degraded: false };
  }

  countRestart(cause: FailureCause): void {
    this.restarts.set(cause, (this.restarts.get(cause) ?? 0) + 1);
  }

  /** Calls `start` after `delayMs`, unless cancelled by then. */
  scheduleStart(delayMs: number, start: () => void): void {
    clearTimeout(this.#startTimer);
    this.#startTimer = setTimeout(start, delayMs);
  }

  cancelStart(): void {
    clearTimeout(this.#startTimer);
  }
}
