import { COLLECTION_TIMEOUT_MS, type CollectedMetrics } from '../contract/snapshot/index.js';
import { addUp } from '../contract/snapshot/metrics-body.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** Runs `action` after `ms`. @returns a function that cancels it. */
export type Later = (ms: number, action: () => void) => () => void;

interface LastMetrics {
  readonly body: string;
  /** When the worker serialised the metrics, monotonic ms. */
  readonly serializedAt: number;
}

/** A collection of all workers' metrics, shared by all requests that come while it runs. */
interface Collection {
  readonly waitingFor: Set<WorkerHandle>;
  readonly listeners: ((collected: CollectedMetrics) => void)[];
  readonly cancelTimer: () => void;
}

/**
 * Relays metrics between workers. The primary keeps the last body of each worker, and for each slot
 * what its ended workers have counted. The process that asks for the metrics merges the bodies.
 */
export class MetricsRelay {
  readonly #last = new WeakMap<WorkerHandle, LastMetrics>();
  /** Workers that have not answered `collect` yet. They are not asked again until they do. */
  readonly #asked = new WeakSet<WorkerHandle>();
  #collection: Collection | undefined;
  /** The sums of the metrics of each slot's ended workers. */
  readonly #retired = new Map<number, string>();

  constructor(
    private readonly table: Pick<WorkerTable, 'workers' | 'snapshot'>,
    private readonly later: Later,
  ) {}

  /** Stores the requester's metrics, and answers with the metrics of all workers. */
  collectFor(requester: WorkerHandle, id: number, body: string, serializedAt: number): void {
    this.#last.set(requester, { body, serializedAt });
    this.#join((result) => requester.send({ type: 'answer', id, result }), requester);
  }

  collect(): Promise<CollectedMetrics> {
    return new Promise((resolve) => this.#join(resolve));
  }

  /** Stores the metrics of a worker, which may have been asked for them. */
  store(worker: WorkerHandle, body: string, serializedAt: number): void {
    this.#last.set(worker, { body, serializedAt });
    this.#asked.delete(worker);
    this.#noLongerWaitFor(worker);
  }

  retire(worker: WorkerHandle): void {
    // The body is empty if the app does not import the module.
    const { body } = this.#last.get(worker) ?? {};
    const { slot } = worker.identity;
    if (body) this.#retired.set(slot, addUp(this.#retired.get(slot), body));
    this.#noLongerWaitFor(worker);
  }

  /** Workers that would read a request soon. */
  get #answering(): WorkerHandle[] {
    return this.table.workers.filter(
      (worker) =>
        ['ready', 'draining'].includes(worker.state) &&
        worker.reachable &&
        !this.#asked.has(worker),
    );
  }

  /** Calls `listener` when all workers have answered, or time is up. The requester is not asked. */
  #join(listener: (collected: CollectedMetrics) => void, requester?: WorkerHandle): void {
    this.#collection ??= this.#begin(requester);
    this.#collection.listeners.push(listener);
    this.#noLongerWaitFor(requester);
  }

  #begin(requester: WorkerHandle | undefined): Collection {
    const others = this.#answering.filter((worker) => worker !== requester);
    for (const worker of others) {
      this.#asked.add(worker);
      worker.send({ type: 'collect' });
    }
    const collection: Collection = {
      waitingFor: new Set(others),
      listeners: [],
      cancelTimer: this.later(COLLECTION_TIMEOUT_MS, () => this.#complete(collection)),
    };
    return collection;
  }

  #noLongerWaitFor(worker: WorkerHandle | undefined): void {
    const collection = this.#collection;
    if (worker !== undefined) collection?.waitingFor.delete(worker);
    if (collection?.waitingFor.size === 0) this.#complete(collection);
  }

  #complete(collection: Collection): void {
    // This comes first: even if a listener throws, the next request begins a new collection.
    if (this.#collection === collection) this.#collection = undefined;
    collection.cancelTimer();
    const collected = this.#collected();
    for (const listener of collection.listeners.splice(0)) listener(collected);
  }

  #collected(): CollectedMetrics {
    const now = performance.now();
    const workers = this.table.workers.flatMap((worker) => {
      const last = this.#last.get(worker);
      if (last === undefined) return [];
      const { slot, generation } = worker.identity;
      return [{ slot, generation, ageMs: Math.round(now - last.serializedAt), body: last.body }];
    });
    // A copy: a worker that exits before the result is read would be added here, and count twice.
    return { snapshot: this.table.snapshot(), workers, retired: [...this.#retired.values()] };
  }
}
