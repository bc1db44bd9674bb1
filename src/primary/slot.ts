import type { RestartOptions } from '../options/index.js';
import { type FailureCause, SLOT_TOTALS, type WorkerExit } from '../snapshot/index.js';
import {
  type Failure,
  type FailureHistory,
  NO_FAILURES,
  recordFailure,
} from './policies/restart.policy.js';
import type { Release } from './release.js';
import type { WorkerHandle } from './worker-handle.js';

type SlotTotals = Record<(typeof SLOT_TOTALS)[number], number>;

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
  /** Processes that were started for it. */
  launches = 0;
  readonly restarts = new Map<FailureCause, number>();
  /** Counted by workers of this slot that are gone. */
  readonly #retired: SlotTotals = {
    requestsTotal: 0,
    rebalancedConnectionsTotal: 0,
    logLinesDroppedTotal: 0,
    droppedConnectionsTotal: 0,
    cpuSecondsTotal: 0,
    gcSecondsTotal: 0,
  };
  abortedRequests = 0;
  droppedMessages = 0;
  refusedMetrics = 0;
  #startTimer: NodeJS.Timeout | undefined;

  #failedBefore = false;

  constructor(
    readonly index: number,
    /** What its next worker runs. */
    public release: Release,
  ) {}

  /** Every process of this slot that is still there; the newest last. */
  get workers(): readonly WorkerHandle[] {
    return [...this.retiring, this.current, this.candidate].filter((each) => each !== undefined);
  }

  /** What all workers of this slot have counted since the primary started. */
  get totals(): Readonly<SlotTotals> {
    const totals = { ...this.#retired };
    for (const { stats } of this.workers) {
      for (const name of SLOT_TOTALS) totals[name] += stats?.[name] ?? 0;
    }
    // Sums of floats depend on their order, and Prometheus takes the smallest fall for a restart.
    for (const name of SLOT_TOTALS) totals[name] = Math.round(totals[name] * 1e6) / 1e6;
    return totals;
  }

  /** In a crash loop. */
  get degraded(): boolean {
    return this.failures.degraded;
  }

  /** None of its workers has failed so far. */
  get untried(): boolean {
    return !this.#failedBefore;
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
    for (const name of SLOT_TOTALS) this.#retired[name] += worker.stats?.[name] ?? 0;
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
    this.#failedBefore = true;
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
