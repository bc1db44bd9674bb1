import type { WorkerMetrics } from '../snapshot/index.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** How long a scrape waits for workers; one that is blocked is represented by what it last sent. */
const COLLECT_TIMEOUT_MS = 500;

/** Bodies of dead workers kept apart before a worker is asked to fold them into one. */
const MAX_RETIRED_BODIES = 8;

/**
 * Relays metrics between workers. The primary never parses them: it keeps the
 * last body of each worker and those of workers that are gone as strings, and
 * whoever asked merges them.
 */
export class MetricsRelay {
  readonly #retired: string[] = [];
  /** Changes when bodies are folded, so that a late answer to an older fold is dropped. */
  #epoch = 0;
  #folding: WorkerHandle | undefined;
  #collection: Collection | undefined;

  constructor(private readonly table: WorkerTable) {}

  /** A worker sent its metrics and wants everybody's. Requests that overlap share one collection. */
  collect(asker: WorkerHandle, id: number, body: string, now: number): void {
    asker.metrics = { body, receivedAt: now };
    if (this.#collection === undefined) {
      const others = this.table.workers.filter((worker) => worker !== asker && canAnswer(worker));
      const deadline = setTimeout(() => this.#finish(), COLLECT_TIMEOUT_MS);
      this.#collection = { waitingFor: new Set(others), askers: [], deadline };
      for (const worker of others) {
        worker.collecting = true;
        worker.send({ type: 'collect' });
      }
    }
    this.#collection.askers.push({ worker: asker, id });
    this.#noLongerWaitFor(asker);
  }

  /** A worker sent its metrics, in answer to `collect` or of its own accord. */
  store(worker: WorkerHandle, body: string, asked: boolean, now: number): void {
    worker.metrics = { body, receivedAt: now };
    if (!asked) return;
    worker.collecting = false;
    this.#noLongerWaitFor(worker);
  }

  /** A worker is gone: what it counted stays. */
  retire(worker: WorkerHandle): void {
    // An app without the module has no metrics: its body is empty.
    if (worker.metrics?.body) this.#retired.push(worker.metrics.body);
    if (this.#folding === worker) this.#folding = undefined;
    this.#noLongerWaitFor(worker);
    this.foldIfNeeded();
  }

  /** Keeps the memory that dead workers take bounded, however many there were. */
  foldIfNeeded(): void {
    if (this.#retired.length <= MAX_RETIRED_BODIES) return;
    // Whoever was asked may be blocked: at twice the number another one is.
    if (this.#folding !== undefined && this.#retired.length <= 2 * MAX_RETIRED_BODIES) return;
    const worker = this.table.workers.find((each) => each !== this.#folding && canAnswer(each));
    if (worker === undefined) return;
    this.#folding = worker;
    worker.send({ type: 'fold', epoch: this.#epoch, bodies: this.#retired });
  }

  /** A worker folded the first `count` bodies into one. */
  folded(worker: WorkerHandle, epoch: number, count: number, body: string): void {
    if (this.#folding !== worker || epoch !== this.#epoch || count > this.#retired.length) return;
    this.#retired.splice(0, count, body);
    this.#epoch += 1;
    this.#folding = undefined;
  }

  #noLongerWaitFor(worker: WorkerHandle): void {
    this.#collection?.waitingFor.delete(worker);
    if (this.#collection?.waitingFor.size === 0) this.#finish();
  }

  #finish(): void {
    const collection = this.#collection;
    if (collection === undefined) return;
    this.#collection = undefined;
    clearTimeout(collection.deadline);
    const snapshot = this.table.snapshot();
    const now = performance.now();
    const workers = this.table.workers.flatMap((worker): WorkerMetrics[] =>
      worker.metrics === undefined
        ? []
        : [
            {
              slot: worker.identity.slot,
              ageMs: Math.round(now - worker.metrics.receivedAt),
              body: worker.metrics.body,
            },
          ],
    );
    for (const { worker, id } of collection.askers) {
      worker.send({ type: 'collected', id, snapshot, workers, retired: this.#retired });
    }
  }
}

interface Collection {
  readonly waitingFor: Set<WorkerHandle>;
  readonly askers: { readonly worker: WorkerHandle; readonly id: number }[];
  readonly deadline: NodeJS.Timeout;
}

/** Whether a question would be read soon. */
function canAnswer(worker: WorkerHandle): boolean {
  return (
    (worker.state === 'ready' || worker.state === 'draining') &&
    worker.reachable &&
    !worker.collecting
  );
}
