import type { LoadReport } from '../contract/messages.js';
import {
  isClear,
  isToGiveAway,
  nextSurplus,
  type Surplus,
  surplusRatios,
} from '../decide/policies/rebalance.policy.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** The shortest time between two rounds, used while a worker has a clear surplus of load. */
export const BALANCE_TICK_MS = 250;

/** Ticks between two rounds. After a clear surplus, a round begins at the next tick. */
const CALM_TICKS = 4;

/**
 * Balances the load, because the kernel may distribute connections unevenly: a worker with more than
 * its share must make some clients reconnect. A round ends when all workers have reported, or when
 * the next round begins. Workers that have not reported by then are ignored.
 */
export class Balance {
  readonly #round = new Map<WorkerHandle, LoadReport | undefined>();
  #surpluses = new Map<WorkerHandle, Surplus>();
  #ticksToRest = 0;

  constructor(private readonly table: WorkerTable) {}

  /** Begins a round at the next tick, because a new worker has hardly any load yet. */
  workerJoined(): void {
    this.#surpluses.clear(); // the new worker may take a surplus that no other worker could take
    this.#ticksToRest = 0;
  }

  /** Begins a round if one is due: asks the ready workers for their load. */
  tick(): void {
    if (this.#ticksToRest > 0) {
      this.#ticksToRest -= 1;
      return;
    }
    this.#ticksToRest = CALM_TICKS - 1;
    if (this.#round.size > 0) this.#decide();
    const serving = this.table.workers.filter(({ state }) => state === 'ready');
    if (serving.length < 2) return;
    for (const worker of serving) {
      this.#round.set(worker, undefined);
      if (worker.reachable) worker.send({ type: 'report-load' });
    }
  }

  report(worker: WorkerHandle, load: LoadReport): void {
    if (!this.#round.has(worker)) return;
    this.#round.set(worker, load);
    if ([...this.#round.values()].every((each) => each !== undefined)) this.#decide();
  }

  #decide(): void {
    const reports = [...this.#round].filter(
      (entry): entry is [WorkerHandle, LoadReport] =>
        entry[1] !== undefined && entry[0].state === 'ready',
    );
    this.#round.clear();
    const ratios = surplusRatios(reports.map(([, load]) => load));
    const surpluses = new Map<WorkerHandle, Surplus>();
    reports.forEach(([worker], index) => {
      const surplus = nextSurplus(this.#surpluses.get(worker), ratios[index]!);
      if (surplus === undefined) return;
      surpluses.set(worker, surplus);
      if (!isToGiveAway(surplus)) return;
      worker.send({ type: 'give-away', ratio: surplus.ratio });
      if (isClear(surplus)) this.#ticksToRest = 0;
    });
    this.#surpluses = surpluses;
  }
}
