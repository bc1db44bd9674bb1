import { COLLECTION_TIMEOUT_MS, type CollectedMetrics } from '../contract/snapshot/types.js';
import { addUp } from '../contract/snapshot/metrics-body.js';
import { inTime } from '../contract/process/in-time.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

interface LastMetrics {
  readonly body: string;
  /** When the worker serialised the metrics, monotonic ms. */
  readonly serializedAt: number;
}

/**
 * Relays metrics between workers. The primary keeps each worker's last body, and for each slot the
 * summed counts of its ended workers. The process that asks for the metrics merges the bodies.
 */
export class MetricsRelay {
  readonly #last = new WeakMap<WorkerHandle, LastMetrics>();
  /** Workers that have not answered `collect` yet. They are not asked again until they do. */
  readonly #asked = new WeakMap<WorkerHandle, () => void>();
  /** The running collection of all workers' metrics. Concurrent requests share it. */
  #collection: Promise<CollectedMetrics> | undefined;
  /** Per slot, the summed metrics of its ended workers. */
  readonly #retired = new Map<number, string>();

  constructor(private readonly table: Pick<WorkerTable, 'workers' | 'snapshot'>) {}

  /** Resolves when all workers have answered, or time is up. The requester is not asked. */
  collect(requester?: WorkerHandle): Promise<CollectedMetrics> {
    this.#collection ??= this.#collect(requester).finally(() => (this.#collection = undefined));
    return this.#collection;
  }

  /** Stores the metrics of a worker, and ends the wait for its answer to `collect`. */
  store(worker: WorkerHandle, body: string, serializedAt: number): void {
    this.#last.set(worker, { body, serializedAt });
    this.#asked.get(worker)?.();
    this.#asked.delete(worker);
  }

  retire(worker: WorkerHandle): void {
    // The body is empty if the app does not import the module.
    const { body } = this.#last.get(worker) ?? {};
    const { slot } = worker.identity;
    if (body) this.#retired.set(slot, addUp(this.#retired.get(slot), body));
    this.#asked.get(worker)?.();
  }

  async #collect(requester: WorkerHandle | undefined): Promise<CollectedMetrics> {
    // Unreachable workers are not asked, because they would not answer in time.
    const others = this.table.workers.filter(
      (worker) =>
        worker !== requester &&
        ['ready', 'draining'].includes(worker.state) &&
        worker.reachable &&
        !this.#asked.has(worker),
    );
    const answers = others.map((worker) => {
      const answered = new Promise<void>((resolve) => this.#asked.set(worker, resolve));
      worker.send({ type: 'collect' });
      return answered;
    });
    await inTime<unknown>(Promise.all(answers), COLLECTION_TIMEOUT_MS, () => undefined);
    const now = performance.now();
    const workers = this.table.workers.flatMap((worker) => {
      const last = this.#last.get(worker);
      if (last === undefined) return [];
      const { slot, generation } = worker.identity;
      return [{ slot, generation, ageMs: Math.round(now - last.serializedAt), body: last.body }];
    });
    // Copied, because a worker that exits before the result is read would otherwise count twice.
    return { snapshot: this.table.snapshot(), workers, retired: [...this.#retired.values()] };
  }
}
