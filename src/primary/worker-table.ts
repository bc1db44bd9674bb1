import type { ClusterSnapshot } from '../snapshot/index.js';
import { Slot } from './slot.js';
import { takeSnapshot } from './take-snapshot.js';
import type { WorkerHandle } from './worker-handle.js';

/** Every slot and every process there is: the only registry. It forks and kills nothing. */
export class WorkerTable {
  readonly slots: readonly Slot[];
  readonly generation = 0;

  constructor(
    readonly desired: number,
    readonly balancing: string,
  ) {
    this.slots = Array.from({ length: desired }, (_, index) => new Slot(index));
  }

  get workers(): readonly WorkerHandle[] {
    return this.slots.flatMap((slot) => slot.workers);
  }

  slotOf(worker: WorkerHandle): Slot {
    return this.slots[worker.identity.slot]!;
  }

  snapshot(): ClusterSnapshot {
    return takeSnapshot(this, performance.now());
  }
}
