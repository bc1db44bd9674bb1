import type { EmitEvent } from '../../contract/events/index.js';
import {
  COLLECTION_TIMEOUT_MS,
  type CollectedMetrics,
  MAX_METRICS_BODY_LENGTH,
} from '../../contract/snapshot/index.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerTable } from '../processes/worker-table.js';

/** Bodies of dead workers kept apart before a worker is asked to fold them into one. */
const MAX_RETIRED_BODIES = 2;

/** With more than these, the worker that was asked does not seem to fold them. */
const MAX_UNFOLDED_BODIES = 8;

/**
 * Characters of all bodies together. They travel in one message, of which JSON makes one string:
 * even where it escapes each of them by six, that stays below V8's longest (512 Mi).
 */
export const MAX_HELD_LENGTH = 5 * MAX_METRICS_BODY_LENGTH;

/** Runs `action` after `ms`. Its result cancels that. */
export type Later = (ms: number, action: () => void) => () => void;

/** Metrics as a worker last sent them. */
interface LastMetrics {
  readonly body: string;
  /** Monotonic ms. */
  readonly serializedAt: number;
}

/** One collection of everybody's metrics, for all that ask while it lasts. */
interface Collection {
  readonly waitingFor: Set<WorkerHandle>;
  readonly listeners: ((collected: CollectedMetrics) => void)[];
  readonly cancelTimer: () => void;
}

/**
 * Relays metrics between workers. The primary never parses them. It keeps the last
 * body of each worker, also of those that are gone, as strings. The process that
 * asked merges them.
 */
export class MetricsRelay {
  readonly #last = new WeakMap<WorkerHandle, LastMetrics>();
  /** Workers that have not answered `collect` yet: another would only queue behind it. */
  readonly #asked = new WeakSet<WorkerHandle>();
  #collection: Collection | undefined;
  readonly #retired: string[] = [];
  /** Changes when bodies are folded, so that a late answer to an older fold is dropped. */
  #epoch = 0;
  /** Workers that were asked in this epoch, and to fold how many: the first that answers has done it. */
  readonly #folding = new Map<WorkerHandle, number>();
  #toldOfSize = false;

  constructor(
    private readonly table: Pick<WorkerTable, 'workers' | 'countsOf' | 'snapshot'>,
    private readonly emit: EmitEvent,
    private readonly later: Later,
  ) {}

  /** A worker sent its metrics and wants everybody's. */
  collectFor(requester: WorkerHandle, id: number, body: string, serializedAt: number): void {
    this.#keep(requester, body, serializedAt);
    this.#join((collected) => requester.send({ type: 'collected', id, ...collected }), requester);
  }

  /** The primary itself wants everybody's metrics. */
  collect(): Promise<CollectedMetrics> {
    return new Promise((resolve) => this.#join(resolve));
  }

  /** A worker sent its metrics. @param asked in answer to `collect`. */
  store(worker: WorkerHandle, body: string, asked: boolean, serializedAt: number): void {
    this.#keep(worker, body, serializedAt);
    if (!asked) return;
    this.#asked.delete(worker);
    this.#noLongerWaitFor(worker);
  }

  /** A worker is gone: what it counted stays. */
  retire(worker: WorkerHandle): void {
    // An app without the module has no metrics: its body is empty.
    const body = this.#bodyOf(worker);
    if (body !== '') this.#retired.push(body);
    this.#folding.delete(worker);
    this.#noLongerWaitFor(worker);
    this.foldIfNeeded();
  }

  /** Keeps the memory that dead workers take bounded, however many there were. */
  foldIfNeeded(): void {
    if (this.#retired.length <= MAX_RETIRED_BODIES) return;
    // The worker that was asked may be blocked: with many more another one is.
    if (this.#folding.size > 0 && this.#retired.length <= MAX_UNFOLDED_BODIES) return;
    const worker = this.#answering.find((each) => !this.#folding.has(each));
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

  /** Workers that would read a question soon. */
  get #answering(): WorkerHandle[] {
    return this.table.workers.filter(
      (worker) =>
        (worker.state === 'ready' || worker.state === 'draining') &&
        worker.reachable &&
        !this.#asked.has(worker),
    );
  }

  #bodyOf(worker: WorkerHandle): string {
    return this.#last.get(worker)?.body ?? '';
  }

  get #heldLength(): number {
    const live = this.table.workers.map((worker) => this.#bodyOf(worker));
    return lengthOf(this.#retired) + lengthOf(live);
  }

  /** Keeps what a worker sent. If all together are too much, what it sent before stands for it. */
  #keep(worker: WorkerHandle, body: string, serializedAt: number): void {
    const others = this.#heldLength - this.#bodyOf(worker).length;
    if (others + body.length <= MAX_HELD_LENGTH) {
      this.#last.set(worker, { body, serializedAt });
      return;
    }
    this.table.countsOf(worker).refusedMetrics += 1;
    if (this.#toldOfSize) return;
    this.#toldOfSize = true;
    const megabytes = (length: number) => Math.round(length / 1024 / 1024);
    this.emit('warning', {
      message:
        `metrics of all workers together are larger than ${megabytes(MAX_HELD_LENGTH)} MB: ${megabytes(body.length)} MB are left out, and what it sent before stands for them, if anything; ` +
        'give them fewer labels',
      worker: worker.identity,
    });
  }

  /** Calls `listener` when all have answered, or it is time. An requester has sent its metrics already. */
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
    // First of all: whatever a send does, the next question begins anew.
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
      const { slot } = worker.identity;
      return [{ slot, ageMs: Math.round(now - last.serializedAt), body: last.body }];
    });
    // A copy: a worker that ends before this is read is in `workers` already.
    return { snapshot: this.table.snapshot(), workers, retired: [...this.#retired] };
  }
}

function lengthOf(bodies: readonly string[]): number {
  return bodies.reduce((sum, { length }) => sum + length, 0);
}
