import { type ClusterError, WorkersFailedError } from '../errors/index.js';
import type { EmitEvent } from '../events/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import type { FailureCause } from '../snapshot/index.js';
import { reasonToGiveUp } from './policies/give-up.policy.js';
import {
  isOverBudget,
  recoveryMs,
  restartDelayMs,
  TOGETHER_MS,
  withinWindow,
} from './policies/restart.policy.js';
import type { Slot } from './slot.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** What becomes of a slot whose worker failed: another one, sooner or later, or the end of the cluster. */
export class Recovery {
  /** Whether any worker has ever become ready. */
  everReady = false;
  #failures = 0;
  /** When slots were last restarted; monotonic ms. */
  #restarts: readonly number[] = [];

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly table: WorkerTable,
    private readonly emit: EmitEvent,
    private readonly startDue: (slot: Slot) => void,
  ) {}

  /** How long a worker must live for its slot's past to be forgotten, in ms. */
  get recoveryMs(): number {
    return recoveryMs(this.options.restart);
  }

  /**
   * Takes note of a failure.
   *
   * @returns why the cluster cannot go on, if it cannot.
   */
  note(worker: WorkerHandle, cause: FailureCause, detail: string): ClusterError | undefined {
    const { restart } = this.options;
    const now = performance.now();
    const slot = this.table.slotOf(worker);
    const livedMs = worker.readyAt === undefined ? 0 : now - worker.readyAt;
    this.#failures += 1;
    // This one too: where it does not count, nothing is made of the sum either.
    const recent = this.table.slots.map((each) => {
      const before = withinWindow(each.failures.recent, now, restart).length;
      return each === slot ? before + 1 : before;
    });
    const overBudget = isOverBudget(recent, restart);
    slot.recordFailure({ cause, livedMs, started: worker.started }, now, restart, overBudget);
    const reason = reasonToGiveUp({
      everReady: this.everReady,
      failures: this.#failures,
      // A candidate may bring the code that does not fail.
      slots: this.table.slots.map(({ degraded, ready, candidate, untried }) => ({
        degraded,
        ready: ready || candidate !== undefined,
        untried,
      })),
    });
    if (reason === undefined) return undefined;
    const unknown = { name: 'Error', message: `${detail}; see its output above` };
    return new WorkersFailedError(reason, { cause: worker.error ?? unknown });
  }

  /** Gives the slot a new worker, after the delay that its failures call for. */
  restart(slot: Slot): void {
    const now = performance.now();
    const together = this.#restarts.filter((at) => now - at < TOGETHER_MS);
    this.#restarts = [...together, now];
    const { restart } = this.options;
    const delayMs = restartDelayMs(slot.failures, restart, Math.random(), together.length);
    const { inARow: failures, degraded } = slot.failures;
    this.emit('worker-restarting', { slot: slot.index, delayMs, failures, degraded });
    slot.scheduleStart(delayMs, () => this.startDue(slot));
  }
}
