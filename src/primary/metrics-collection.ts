import { COLLECTION_TIMEOUT_MS } from '../snapshot/index.js';
import type { Later } from './later.js';
import type { HeldMetrics } from './metrics-relay.js';
import type { WorkerHandle } from './worker-handle.js';

/** How long the others wait for the worker that merges, before the next of them does. */
const MERGE_TIMEOUT_MS = 150;

interface Asker {
  readonly worker: WorkerHandle;
  readonly id: number;
  /** It was sent everything, to merge for the others as well. */
  merges: boolean;
}

/**
 * One collection of everybody's metrics, for all that ask while it lasts. When
 * the workers have answered, the first worker that asked merges what they sent,
 * and the others are given what it made of it: many scrapes cost what one does.
 */
export class MetricsCollection {
  readonly #waitingFor: Set<WorkerHandle>;
  /** Workers that asked. */
  #askers: Asker[] = [];
  readonly #listeners: ((held: HeldMetrics) => void)[] = [];
  /** What it was when all had answered. */
  #held: HeldMetrics | undefined;
  #cancelTimer: () => void;

  constructor(
    workers: readonly WorkerHandle[],
    private readonly relay: {
      held(): HeldMetrics;
      over(): void;
      readonly later: Later;
    },
  ) {
    this.#waitingFor = new Set(workers);
    this.#cancelTimer = relay.later(COLLECTION_TIMEOUT_MS, () => this.#complete());
  }

  /** A worker wants what is collected. */
  ask(worker: WorkerHandle, id: number): void {
    this.#askers.push({ worker, id, merges: false });
  }

  /** Likewise the primary. */
  tell(listener: (held: HeldMetrics) => void): void {
    if (this.#held !== undefined) return listener(this.#held);
    this.#listeners.push(listener);
    this.#completeIfAllAnswered();
  }

  noLongerWaitFor(worker: WorkerHandle): void {
    this.#waitingFor.delete(worker);
    this.#completeIfAllAnswered();
  }

  /** A worker has ended. */
  leave(worker: WorkerHandle): void {
    this.#askers = this.#askers.filter((asker) => asker.worker !== worker);
    if (this.#held === undefined) this.noLongerWaitFor(worker);
    else if (!this.#askers.some(({ merges }) => merges)) this.#letMerge();
  }

  /** What `worker` made of everybody's metrics. Of several that do, whoever is first has done it. */
  merged(worker: WorkerHandle, body: string): void {
    if (!this.#askers.some((asker) => asker.merges && asker.worker === worker)) return;
    const { snapshot, workers } = this.#held!;
    const ages = workers.map(({ slot, ageMs }) => ({ slot, ageMs }));
    this.#end(); // first of all: whatever a send does, the next question begins anew
    for (const { worker: asker, id, merges } of this.#askers) {
      if (!merges) asker.send({ type: 'merged', id, snapshot, ages, body });
    }
  }

  #completeIfAllAnswered(): void {
    if (this.#held === undefined && this.#waitingFor.size === 0) this.#complete();
  }

  #complete(): void {
    this.#held = this.relay.held();
    for (const listener of this.#listeners) listener(this.#held);
    this.#letMerge();
  }

  #letMerge(): void {
    this.#cancelTimer();
    const waiting = this.#askers.filter(({ merges }) => !merges);
    const [merger] = waiting;
    if (merger === undefined) return this.#end();
    merger.merges = true;
    const shared = waiting.length > 1;
    if (!shared) this.#end();
    // It may be blocked by now.
    else this.#cancelTimer = this.relay.later(MERGE_TIMEOUT_MS, () => this.#letMerge());
    merger.worker.send({ type: 'collected', id: merger.id, ...this.#held!, shared });
  }

  #end(): void {
    this.#cancelTimer();
    this.relay.over();
  }
}
