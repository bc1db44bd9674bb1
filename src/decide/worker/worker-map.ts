import type { Worker, WorkerId } from '../cluster-state.js';

/**
 * An immutable map of workers by their id, the oldest first. It is an array, because each heartbeat
 * copies it: for 64 workers, copying a `Map` takes 100 times as long.
 */
export class WorkerMap {
  constructor(private readonly list: readonly Worker[] = []) {}

  get size(): number {
    return this.list.length;
  }

  get(id: WorkerId): Worker | undefined {
    const found = this.list[this.#indexOf(id)];
    return found?.id === id ? found : undefined;
  }

  values(): readonly Worker[] {
    return this.list;
  }

  keys(): readonly WorkerId[] {
    return this.list.map(({ id }) => id);
  }

  with(worker: Worker): WorkerMap {
    const index = this.#indexOf(worker.id);
    const isNew = index === this.list.length;
    return new WorkerMap(isNew ? [...this.list, worker] : this.list.with(index, worker));
  }

  without(id: WorkerId): WorkerMap {
    return new WorkerMap(this.list.filter((each) => each.id !== id));
  }

  /** The index of a worker in the list, or the index at which to insert it. The list is sorted by id. */
  #indexOf(id: WorkerId): number {
    let [from, to] = [0, this.list.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (this.list[middle]!.id < id) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
