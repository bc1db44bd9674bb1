import type { ClusterSnapshot } from '../../contract/snapshot/index.js';
import type { Emit } from '../decide/effect.js';
import type { ClusterState, WorkerId } from '../decide/cluster-state.js';
import type { Listening } from '../listening/listening.interface.js';
import type { PrimaryMeter } from '../serve/primary-meter.js';
import { acceptBacklog, listenOverflows } from '../listening/accept-backlog.js';
import { SlotCounts } from '../serve/slot-counts.js';
import { takeSnapshot } from '../serve/take-snapshot.js';
import type { WorkerHandle } from './worker-handle.js';

/** The processes of all workers in the state of the core: the only registry of processes. */
export class WorkerTable {
  readonly #handles = new Map<WorkerId, WorkerHandle>();
  /** Handles of the workers that were removed since the last change of the state. */
  readonly #gone = new Map<WorkerId, WorkerHandle>();
  #state: ClusterState;
  readonly #counts = new Map<number, SlotCounts>();

  constructor(
    state: ClusterState,
    private readonly listening: Pick<Listening, 'balancing' | 'ports' | 'sockets'>,
    private readonly meter: Pick<PrimaryMeter, 'stats'>,
  ) {
    this.#state = state;
  }

  get state(): ClusterState {
    return this.#state;
  }

  /** Takes the new state of the core, and forgets the handles of removed workers. */
  update(state: ClusterState): void {
    this.#state = state;
    if (this.#gone.size > 0) this.#gone.clear();
  }

  add(id: WorkerId, handle: WorkerHandle): void {
    handle.known = () => this.#state.workers.get(id);
    this.#handles.set(id, handle);
  }

  /** Removes a worker that has exited. Its slot keeps the worker's counts. */
  remove(id: WorkerId): WorkerHandle | undefined {
    const handle = this.#handles.get(id);
    if (handle === undefined) return undefined;
    this.#handles.delete(id);
    this.#gone.set(id, handle);
    this.countsOf(handle).keep(handle.stats);
    return handle;
  }

  /** The handle of a worker, even if it was removed since the last change of the state. */
  find(id: WorkerId): WorkerHandle | undefined {
    return this.#handles.get(id) ?? this.#gone.get(id);
  }

  /** Returns an event of the core with the worker's identity in place of its number. */
  identified({ event }: Emit): object {
    const { worker } = event as { readonly worker?: WorkerId };
    const identity = worker === undefined ? undefined : this.find(worker)?.identity;
    return identity ? { ...event, worker: identity } : event;
  }

  /** All processes, the oldest first. */
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
        shown: {
          balancing,
          ports,
          primary: this.meter.stats(),
          acceptBacklog: acceptBacklog(this.listening),
          listenOverflowsTotal: listenOverflows(),
        },
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
