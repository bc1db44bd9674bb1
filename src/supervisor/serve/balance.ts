import type { LoadReport } from '../../contract/ipc/index.js';
import {
  isClear,
  isToGiveAway,
  nextSurplus,
  type Surplus,
  surplusRatios,
} from '../decide/policies/rebalance.policy.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerTable } from '../processes/worker-table.js';

/** How soon a round can follow another, where some workers had too much. */
export const BALANCE_TICK_MS = 250;

/** Ticks from one round to the next, unless one showed a clear surplus: then it is one. */
const CALM_TICKS = 4;

/**
 * Corrects what the kernel leaves uneven: workers that carry more than their
 * share are told to ask some of their clients to connect again. A round ends as
 * soon as all workers have reported, and else with the next: one that is
 * blocked is left out.
 */
export class Balance {
  /** Workers of the round under way, and what they have reported. */
  readonly #round = new Map<WorkerHandle, LoadReport | undefined>();
  #surpluses = new Map<WorkerHandle, Surplus>();
  #ticksToRest = 0;

  constructor(private readonly table: WorkerTable) {}

  /** A worker has become ready, and most likely carries nothing: that need not wait. */
  workerJoined(): void {
    this.#surpluses.clear(); // what could not be helped without it may be now
    this.#ticksToRest = 0;
  }

  /** Begins a round where one is due: workers are asked what they carry. */
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

  /** Takes the load of a worker since it was last asked. */
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
