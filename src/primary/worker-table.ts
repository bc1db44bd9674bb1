import { readFileSync } from 'node:fs';
import type { Backlog, ClusterSnapshot } from '../contract/snapshot/index.js';
import type { Emit } from '../decide/effect.js';
import type { ClusterState, WorkerId } from '../decide/cluster-state.js';
import type { Listening } from './listening/listening.interface.js';
import type { PrimaryMeter } from './serve/primary-meter.js';
import { SlotCounts } from './serve/slot-counts.js';
import { takeSnapshot } from './take-snapshot.js';
import type { WorkerHandle } from './worker-handle.js';
import { queueLengths } from '../contract/process/accept-queue.js';

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

/**
 * The connections that the kernel holds until a worker accepts them, for each address. Sockets on
 * one address count together. An address whose queue cannot be read is left out: it is no TCP
 * socket that the primary holds, or the system has no /proc.
 */
export function acceptBacklog({ sockets }: Pick<Listening, 'sockets'>): Backlog[] {
  const lengths = queueLengths(sockets.flatMap(({ inode }) => inode ?? []));
  const waiting = new Map<string, number>();
  for (const { inode, url } of sockets) {
    const length = lengths.get(inode ?? '');
    // A socket has no queue until its worker listens.
    if (length !== undefined) waiting.set(url, (waiting.get(url) ?? 0) + length);
  }
  return [...waiting].map(([socket, connections]) => ({ socket, connections }));
}

/**
 * How often a full accept queue has turned a connection away since the machine started, over all
 * sockets of the network namespace. `null` without /proc.
 */
export function listenOverflows(read = () => readFileSync('/proc/net/netstat', 'latin1')) {
  try {
    const [names = [], values = []] = read()
      .split('\n')
      .filter((line) => line.startsWith('TcpExt:'))
      .map((line) => line.split(' '));
    const value = values[names.indexOf('ListenOverflows')];
    return value === undefined ? null : Number(value);
  } catch {
    return null;
  }
}
