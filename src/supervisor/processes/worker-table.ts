import type { ClusterSnapshot } from '../../contract/snapshot/index.js';
import type { Emit } from '../decide/effect.js';
import type { ClusterState, WorkerId } from '../decide/cluster-state.js';
import type { Listening } from '../listening/listening.interface.js';
import type { PrimaryMeter } from '../serve/primary-meter.js';
import { SlotCounts } from '../serve/slot-counts.js';
import { takeSnapshot } from '../serve/take-snapshot.js';
import type { WorkerHandle } from './worker-handle.js';

/** The process of each worker that the core knows: the only registry of them. It forks and kills nothing. */
export class WorkerTable {
  readonly #handles = new Map<WorkerId, WorkerHandle>();
  /** Handles of the workers that the last change has ended. */
  readonly #gone = new Map<WorkerId, WorkerHandle>();
  #state: ClusterState;
  readonly #counts = new Map<number, SlotCounts>();

  constructor(
    state: ClusterState,
    /** How the workers come to their connections. */
    private readonly listening: Pick<Listening, 'balancing' | 'ports'>,
    private readonly meter: Pick<PrimaryMeter, 'stats'>,
  ) {
    this.#state = state;
  }

  get state(): ClusterState {
    return this.#state;
  }

  /** The cluster has changed. */
  update(state: ClusterState): void {
    this.#state = state;
    if (this.#gone.size > 0) this.#gone.clear();
  }

  add(id: WorkerId, handle: WorkerHandle): void {
    handle.look = () => this.#state.workers.get(id);
    this.#handles.set(id, handle);
  }

  /** It has exited: what it had counted stays with its slot. */
  remove(id: WorkerId): WorkerHandle | undefined {
    const handle = this.#handles.get(id);
    if (handle === undefined) return undefined;
    this.#handles.delete(id);
    this.#gone.set(id, handle);
    this.countsOf(handle).keep(handle.stats);
    return handle;
  }

  /** Requests that are kept from the app. */
  quarantined = 0;

  /** Also of a worker that has exited by the last change. */
  find(id: WorkerId): WorkerHandle | undefined {
    return this.#handles.get(id) ?? this.#gone.get(id);
  }

  /** An event of the core, with all that is known of its worker in place of the number. */
  identified({ event }: Emit): object {
    const { worker } = event as { readonly worker?: WorkerId };
    const identity = worker === undefined ? undefined : this.find(worker)?.identity;
    return identity ? { ...event, worker: identity } : event;
  }

  /** Every process there is, the oldest first. */
  get workers(): readonly WorkerHandle[] {
    return [...this.#handles.values()];
  }

  countsOf({ identity: { slot } }: WorkerHandle): SlotCounts {
    return this.#countsIn(slot);
  }

  snapshot(): ClusterSnapshot {
    const { balancing, ports } = this.listening;
    return takeSnapshot(
      this.#state,
      {
        balancing,
        ports,
        primary: this.meter.stats(),
        quarantined: this.quarantined,
        find: (id) => this.#handles.get(id),
        countsIn: (slot) => this.#countsIn(slot),
      },
      performance.now(),
    );
  }

  #countsIn(slot: number): SlotCounts {
    const counts = this.#counts.get(slot) ?? new SlotCounts();
    this.#counts.set(slot, counts);
    return counts;
  }
}
