import type { EmitEvent } from '../events/index.js';
import type { ResolvedClusterOptions } from '../options/index.js';
import type { HealthVerdict, ReplaceCause } from '../snapshot/index.js';
import { beginDeparture } from './departure.js';
import { NO_FAILURES } from './policies/restart.policy.js';
import type { Release } from './release.js';
import type { Slot } from './slot.js';
import type { WorkerHandle } from './worker-handle.js';

/** A candidate's health check that takes longer has failed. */
const CHECK_TIMEOUT_MS = 2_000;

/** A worker is to be replaced without a gap. */
export interface Replacement {
  readonly slot: Slot;
  readonly cause: ReplaceCause;
  /** What the new worker runs. */
  readonly release: Release;
  /** Its turn has come. */
  readonly started?: () => void;
  /** The new worker serves in the place of the old one, which has yet to drain. */
  readonly tookOver?: () => void;
  /** Whether the old worker waits for the end of all this itself: then nobody waits for its exit. */
  readonly lingers?: () => boolean;
  /** It is over: the old worker has left, or it stays, for the reason given. */
  readonly ended: (failure: string | null) => void;
}

/** What the succession needs of the supervisor. */
export interface SuccessionPorts {
  fork(slot: Slot, release: Release): WorkerHandle;
  /** The slot has no worker, and none is on its way. */
  restart(slot: Slot): void;
  wants(slot: Slot): boolean;
  post(event: SuccessionEvent): void;
}

export type SuccessionEvent =
  | { readonly type: 'canary-over'; readonly worker: WorkerHandle }
  | { readonly type: 'check-overdue'; readonly worker: WorkerHandle };

/**
 * Replaces workers, one slot at a time: the new one is started beside the old
 * one, and only when it is ready, and for a reload has proven itself, does the
 * old one drain. Where the new one fails, the old one stays.
 */
export class Succession {
  readonly #waiting: Replacement[] = [];
  #active: ActiveReplacement | undefined;
  #checks = 0;

  constructor(
    private readonly options: ResolvedClusterOptions,
    private readonly emit: EmitEvent,
    private readonly ports: SuccessionPorts,
  ) {}

  request(replacement: Replacement): void {
    this.#waiting.push(replacement);
    this.#next();
  }

  /** Whether a replacement of the slot is waiting or under way. */
  concerns(slot: Slot): boolean {
    return this.#active?.slot === slot || this.#waiting.some((each) => each.slot === slot);
  }

  ready(worker: WorkerHandle): void {
    if (this.#active?.candidate !== worker) return;
    // Only a reload brings other code, that has to prove itself.
    if (this.#active.cause !== 'reload') return this.#takeOver(this.#active);
    worker.after(this.options.reload.canaryMs, () =>
      this.ports.post({ type: 'canary-over', worker }),
    );
  }

  canaryOver(worker: WorkerHandle): void {
    if (this.#active?.candidate !== worker || worker.state !== 'ready') return;
    this.#active.canaryIsOver = true;
    if (!worker.unproven) this.#check(worker);
  }

  /** What only its threads could tell is known, and well. */
  proven(worker: WorkerHandle): void {
    if (this.#active?.candidate === worker && this.#active.canaryIsOver) this.#check(worker);
  }

  #check(worker: WorkerHandle): void {
    worker.send({ type: 'check', id: ++this.#checks });
    worker.after(CHECK_TIMEOUT_MS, () => this.ports.post({ type: 'check-overdue', worker }));
  }

  checked(worker: WorkerHandle, id: number, { healthy, detail }: HealthVerdict): void {
    const active = this.#active;
    if (active?.candidate !== worker || worker.state !== 'ready' || id !== this.#checks) return;
    if (healthy) this.#takeOver(active);
    else this.#fail(active, `its health check failed: ${detail ?? 'no reason given'}`);
  }

  checkOverdue(worker: WorkerHandle): void {
    if (this.#active?.candidate !== worker) return;
    this.#fail(this.#active, `its health check took longer than ${CHECK_TIMEOUT_MS} ms`);
  }

  /**
   * A worker has left its slot, or is about to.
   *
   * @returns whether it was a candidate: its slot had not come to depend on it.
   */
  left(worker: WorkerHandle, reason: string): boolean {
    const active = this.#active;
    if (active?.candidate === worker) {
      this.#fail(active, reason);
      return true;
    }
    if (active?.predecessor === worker && worker.state === 'exited') this.#end(active, null);
    return false;
  }

  /** The old worker of the replacement under way waits for the end of all this itself. */
  doNotWaitFor(worker: WorkerHandle): void {
    if (this.#active?.predecessor === worker) this.#end(this.#active, null);
  }

  /** The cluster is being shut down: nothing is replaced any more. */
  cancel(reason: string): void {
    const abandoned = [...(this.#active ? [this.#active] : []), ...this.#waiting];
    this.#active = undefined;
    this.#waiting.length = 0;
    // Who asked for anything else does not wait for it.
    for (const { cause, ended } of abandoned) if (cause === 'reload') ended(reason);
  }

  #next(): void {
    while (this.#active === undefined) {
      const replacement = this.#waiting.shift();
      if (replacement === undefined) return;
      const { slot, release, ended } = replacement;
      if (this.ports.wants(slot)) {
        replacement.started?.();
        slot.cancelStart();
        const candidate = (slot.candidate = this.ports.fork(slot, release));
        this.#active = {
          ...replacement,
          candidate,
          canaryIsOver: false,
          predecessor: undefined,
        };
      } else {
        ended(null);
      }
    }
  }

  #takeOver(active: ActiveReplacement): void {
    const { slot, cause, release, candidate, tookOver, lingers } = active;
    const predecessor = slot.promote(candidate!, release);
    active.candidate = undefined;
    active.predecessor = predecessor;
    // What the other code did says nothing of this one.
    if (cause === 'reload') slot.failures = NO_FAILURES;
    tookOver?.();
    if (predecessor !== undefined) {
      slot.retire(predecessor);
      beginDeparture(predecessor, cause, this.options.shutdown, this.emit);
    }
    if (predecessor === undefined || lingers?.()) this.#end(active, null);
  }

  #fail(active: ActiveReplacement, reason: string): void {
    const { slot, cause, candidate } = active;
    active.candidate = undefined;
    if (slot.candidate === candidate && candidate) {
      slot.retire(candidate);
      beginDeparture(candidate, cause, this.options.shutdown, this.emit);
    }
    const wanted = this.ports.wants(slot);
    if (wanted && slot.current === undefined) this.ports.restart(slot);
    this.#end(active, wanted ? reason : null);
  }

  #end(active: ActiveReplacement, failure: string | null): void {
    this.#active = undefined;
    active.ended(failure);
    this.#next();
  }
}

interface ActiveReplacement extends Replacement {
  /** Until it has taken over. */
  candidate: WorkerHandle | undefined;
  /** It has lived for as long as a new one must. */
  canaryIsOver: boolean;
  /** From then on, until it has left. */
  predecessor: WorkerHandle | undefined;
}
