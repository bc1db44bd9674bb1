import type { EmitEvent } from '../events/index.js';
import {
  type ClusterSnapshot,
  MAX_METRICS_BODY_LENGTH,
  type WorkerMetrics,
} from '../snapshot/index.js';
import type { Later } from './later.js';
import { MetricsCollection } from './metrics-collection.js';
import type { WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** Bodies of dead workers kept apart before a worker is asked to fold them into one. */
const MAX_RETIRED_BODIES = 2;

/** More than these, and whoever was asked to fold them does not seem to. */
const MAX_UNFOLDED_BODIES = 8;

/**
 * Characters of all bodies together. They travel in one message, of which JSON makes one string:
 * even where it escapes each of them by six, that stays below V8's longest (512 Mi).
 */
export const MAX_HELD_LENGTH = 5 * MAX_METRICS_BODY_LENGTH;

/** What the primary holds of everybody's metrics. */
export interface HeldMetrics {
  readonly snapshot: ClusterSnapshot;
  readonly workers: readonly WorkerMetrics[];
  readonly retired: readonly string[];
}

/**
 * Relays metrics between workers. The primary never parses them: it keeps the
 * last body of each worker and those of workers that are gone as strings, and
 * whoever asked merges them.
 */
export class MetricsRelay {
  readonly #retired: string[] = [];
  /** Changes when bodies are folded, so that a late answer to an older fold is dropped. */
  #epoch = 0;
  /** Workers that were asked in this epoch, and to fold how many: the first that answers has done it. */
  readonly #folding = new Map<WorkerHandle, number>();
  #collection: MetricsCollection | undefined;
  #toldOfSize = false;

  /** @param later runs an action in time, as an event like any other; what it returns cancels that. */
  constructor(
    private readonly table: WorkerTable,
    private readonly emit: EmitEvent,
    private readonly later: Later,
  ) {}

  /** A worker sent its metrics and wants everybody's. Requests that overlap share one collection. */
  collect(asker: WorkerHandle, id: number, body: string, serializedAt: number): void {
    this.#keep(asker, body, serializedAt);
    const collection = this.#begin(asker);
    collection.ask(asker, id);
    collection.noLongerWaitFor(asker);
  }

  /** The primary itself wants everybody's metrics. */
  gather(): Promise<HeldMetrics> {
    return new Promise((resolve) => this.#begin(undefined).tell(resolve));
  }

  /** A worker sent its metrics, in answer to `collect` or of its own accord. */
  store(worker: WorkerHandle, body: string, asked: boolean, serializedAt: number): void {
    this.#keep(worker, body, serializedAt);
    if (!asked) return;
    worker.collecting = false;
    this.#collection?.noLongerWaitFor(worker);
  }

  /** A worker merged what it was given, for those that had asked as well. */
  merged(worker: WorkerHandle, body: string): void {
    this.#collection?.merged(worker, body);
  }

  /** A worker is gone: what it counted stays. */
  retire(worker: WorkerHandle): void {
    // An app without the module has no metrics: its body is empty.
    if (worker.metrics?.body) this.#retired.push(worker.metrics.body);
    this.#folding.delete(worker);
    this.#collection?.leave(worker);
    this.foldIfNeeded();
  }

  /** Keeps the memory that dead workers take bounded, however many there were. */
  foldIfNeeded(): void {
    if (this.#retired.length <= MAX_RETIRED_BODIES) return;
    // Whoever was asked may be blocked: with many more another one is.
    if (this.#folding.size > 0 && this.#retired.length <= MAX_UNFOLDED_BODIES) return;
    const worker = this.table.workers.find((each) => !this.#folding.has(each) && canAnswer(each));
    if (worker === undefined) return;
    this.#folding.set(worker, this.#retired.length);
    worker.send({ type: 'fold', epoch: this.#epoch, bodies: this.#retired });
  }

  /** A worker folded the first `count` bodies into one. */
  folded(worker: WorkerHandle, epoch: number, count: number, body: string): void {
    // Any other count would lose some of them, or count them twice.
    if (this.#folding.get(worker) !== count || epoch !== this.#epoch) return;
    const foldedLength = lengthOf(this.#retired.slice(0, count));
    if (this.#heldLength - foldedLength + body.length > MAX_HELD_LENGTH) return;
    this.#retired.splice(0, count, body);
    this.#epoch += 1;
    this.#folding.clear();
  }

  get #heldLength(): number {
    const live = this.table.workers.map(({ metrics }) => metrics?.body ?? '');
    return lengthOf(this.#retired) + lengthOf(live);
  }

  /** Holds what a worker sent, unless all are too much then: what it sent before stands for it, if anything. */
  #keep(worker: WorkerHandle, body: string, serializedAt: number): void {
    const others = this.#heldLength - (worker.metrics?.body.length ?? 0);
    if (others + body.length <= MAX_HELD_LENGTH) {
      worker.metrics = { body, serializedAt };
      return;
    }
    this.table.slotOf(worker).refusedMetrics += 1;
    if (this.#toldOfSize) return;
    this.#toldOfSize = true;
    const megabytes = (length: number) => Math.round(length / 1024 / 1024);
    this.emit('warning', {
      message:
        `metrics of all workers together are larger than ${megabytes(MAX_HELD_LENGTH)} MB: ${megabytes(body.length)} MB are left out, and what it sent before stands for them, if anything; ` +
        'give them fewer labels, or lower metrics.maxSeries',
      worker: worker.identity,
    });
  }

  #begin(asker: WorkerHandle | undefined): MetricsCollection {
    if (this.#collection !== undefined) return this.#collection;
    const others = this.table.workers.filter((worker) => worker !== asker && canAnswer(worker));
    const collection = new MetricsCollection(others, {
      held: () => this.#held(),
      over: () => (this.#collection = undefined),
      later: this.later,
    });
    this.#collection = collection;
    for (const worker of others) {
      worker.collecting = true;
      worker.send({ type: 'collect' });
    }
    return collection;
  }

  #held(): HeldMetrics {
    const now = performance.now();
    const workers = this.table.workers.flatMap(({ identity: { slot }, metrics }) =>
      metrics === undefined
        ? []
        : [{ slot, ageMs: Math.round(now - metrics.serializedAt), body: metrics.body }],
    );
    // A copy: a worker that ends while others wait for a merge is in `workers` already.
    return { snapshot: this.table.snapshot(), workers, retired: [...this.#retired] };
  }
}

function lengthOf(bodies: readonly string[]): number {
  return bodies.reduce((sum, { length }) => sum + length, 0);
}

/** Whether a question would be read soon. */
function canAnswer(worker: WorkerHandle): boolean {
  return (
    (worker.state === 'ready' || worker.state === 'draining') &&
    worker.reachable &&
    !worker.collecting
  );
}
