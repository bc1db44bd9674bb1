import type { ClusterSnapshot, PrimaryStats, ReloadOutcome } from '../snapshot/index.js';
import type { Listening } from './listening/listening.interface.js';
import type { PrimaryMeter } from './primary-meter.js';
import type { Release } from './release.js';
import { Slot } from './slot.js';
import { takeSnapshot } from './take-snapshot.js';
import type { WorkerHandle } from './worker-handle.js';

/** Every slot and every process there is: the only registry. It forks and kills nothing. */
export class WorkerTable {
  /** Every slot there ever was: what was counted in one must not be forgotten by scaling down. */
  readonly #slots: Slot[] = [];
  #desired = 0;
  /** As the worker said that became ready last. */
  minReady: ClusterSnapshot['minReady'] = 1;
  readonly reloads: Record<ReloadOutcome, number> = { completed: 0, aborted: 0 };

  constructor(
    desired: number,
    /** How the workers come to their connections. */
    private readonly listening: Pick<Listening, 'balancing' | 'ports'>,
    /** What a new slot runs: the release of the last reload that was completed. */
    public release: Release,
    private readonly meter: Pick<PrimaryMeter, 'stats'>,
  ) {
    this.resize(desired);
  }

  get primary(): PrimaryStats {
    return this.meter.stats();
  }

  get generation(): number {
    return this.release.generation;
  }

  get balancing(): string {
    return this.listening.balancing;
  }

  get ports(): readonly number[] {
    return this.listening.ports;
  }

  /** Workers there should be. */
  get desired(): number {
    return this.#desired;
  }

  /** Slots that should have a worker. */
  get slots(): readonly Slot[] {
    return this.#slots.slice(0, this.#desired);
  }

  /** Slots that should have none any more, with workers that have not left yet. */
  get surplus(): readonly Slot[] {
    return this.#slots.slice(this.#desired).filter((slot) => slot.workers.length > 0);
  }

  /** Slots that have none any more. */
  get dismissed(): readonly Slot[] {
    return this.#slots.slice(this.#desired).filter((slot) => slot.workers.length === 0);
  }

  get workers(): readonly WorkerHandle[] {
    return this.#slots.flatMap((slot) => slot.workers);
  }

  /** @returns the slots that are wanted now and were not before. */
  resize(desired: number): Slot[] {
    const before = this.#desired;
    this.#desired = desired;
    while (this.#slots.length < desired) {
      this.#slots.push(new Slot(this.#slots.length, this.release));
    }
    const added = this.#slots.slice(before, desired);
    for (const slot of added) slot.release = this.release;
    return added;
  }

  slotOf(worker: WorkerHandle): Slot {
    return this.#slots[worker.identity.slot]!;
  }

  wants(slot: Slot): boolean {
    return slot.index < this.#desired;
  }

  snapshot(): ClusterSnapshot {
    return takeSnapshot(this, performance.now());
  }
}
