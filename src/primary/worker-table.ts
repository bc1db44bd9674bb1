import { ProcessMeter } from '../contract/process/process-meter.js';
import type { ClusterSnapshot } from '../contract/snapshot/index.js';
import type { Reading } from '../decide/cluster-event.js';
import type { ClusterState, WorkerId } from '../decide/cluster-state.js';
import type { Emit } from '../decide/effect.js';
import type { Listening } from './listening/listening.js';
import { acceptBacklog, SlotCounts, takeSnapshot } from './take-snapshot.js';
import type { WorkerHandle } from './worker-handle.js';

/** The processes of all workers in the state of the core: the only registry of processes. */
export class WorkerTable {
  readonly #handles = new Map<WorkerId, WorkerHandle>();
  /** Handles of the workers that were removed since the last change of the state. */
  readonly #gone = new Map<WorkerId, WorkerHandle>();
  readonly #counts = new Map<number, SlotCounts>();

  constructor(
    public state: ClusterState,
    private readonly listening: Pick<Listening, 'balancing' | 'ports' | 'sockets'>,
    private readonly droppedLogLines: () => number,
    readonly meter = new ProcessMeter(),
  ) {}

  /** Takes the new state of the core, and forgets the handles of removed workers. */
  update(state: ClusterState): void {
    this.state = state;
    if (this.#gone.size > 0) this.#gone.clear();
  }

  add(id: WorkerId, handle: WorkerHandle): void {
    handle.known = () => this.state.workers.get(id);
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

  get workers(): readonly WorkerHandle[] {
    return [...this.#handles.values()];
  }

  readings(): ReadonlyMap<WorkerId, Reading> {
    return new Map([...this.#handles].map(([id, handle]) => [id, handle.reading()]));
  }

  countsOf({ identity: { slot } }: WorkerHandle): SlotCounts {
    return this.#countsIn(slot);
  }

  snapshot(): ClusterSnapshot {
    const { balancing, ports } = this.listening;
    const primary = {
      pid: process.pid,
      uptimeSeconds: Math.round(process.uptime() * 1_000) / 1_000,
      ...this.meter.peek(),
      logLinesDroppedTotal: this.droppedLogLines(),
    };
    return takeSnapshot(
      this.state,
      {
        shown: {
          balancing,
          ports,
          primary,
          acceptBacklog: acceptBacklog(this.listening),
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
