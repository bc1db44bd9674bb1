import { queueLengths } from '../contract/process/accept-queue.js';
import { ProcessMeter } from '../contract/process/process-meter.js';
import { COUNTERS, GAUGES, type CounterName, type WorkerStats } from '../contract/stats.js';
import type {
  Backlog,
  ClusterSnapshot,
  SlotCounts,
  WorkerSnapshot,
} from '../contract/snapshot/types.js';
import type { Reading } from '../decide/input.js';
import {
  type ClusterState,
  isServed,
  isWanted,
  type Slot,
  wantedSlots,
  type Worker,
  type WorkerId,
  workersOf,
} from '../decide/cluster-state.js';
import type { Emit } from '../decide/effect.js';
import type { Listening } from './listening/listening.js';
import { isResponsive, type WorkerHandle } from './worker-handle.js';

/** The only registry of worker processes. Maps the workers in the core's state to their handles. */
export class WorkerTable {
  readonly #handles = new Map<WorkerId, WorkerHandle>();
  /** Handles of workers removed since the last state change. */
  readonly #gone = new Map<WorkerId, WorkerHandle>();
  /** For each slot, the summed counts of its exited workers. */
  readonly #ended = new Map<number, Partial<WorkerStats>>();

  constructor(
    public state: ClusterState,
    private readonly listening: Pick<Listening, 'balancing' | 'ports' | 'sockets'>,
    private readonly droppedLogLines: () => number,
    readonly meter = new ProcessMeter(),
  ) {}

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
    handle.closeConnections();
    this.#gone.set(id, handle);
    const { slot } = handle.identity;
    this.#ended.set(slot, totalsOf([this.#ended.get(slot), handle.stats]));
    return handle;
  }

  /** A worker's handle, even if the worker was removed since the last state change. */
  find(id: WorkerId): WorkerHandle | undefined {
    return this.#handles.get(id) ?? this.#gone.get(id);
  }

  /** Returns a core event with the worker's identity in place of its number. */
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

  snapshot(): ClusterSnapshot {
    const { state, listening } = this;
    const { desired, release, slots, minReady, reloads, leadership } = state;
    const wanted = wantedSlots(state);
    const isShown = ({ index }: Slot): boolean =>
      isWanted(state, index) || workersOf(state, index).length > 0;
    const leader = leadership.leader && this.#handles.get(leadership.leader);
    return {
      balancing: listening.balancing,
      ports: listening.ports,
      acceptBacklog: acceptBacklog(listening),
      primary: {
        pid: process.pid,
        uptimeSeconds: Math.round(process.uptime() * 1_000) / 1_000,
        ...this.meter.peek(),
        logLinesDroppedTotal: this.droppedLogLines(),
      },
      desired,
      ready: wanted.filter((slot) => isServed(state, slot)).length,
      minReady,
      generation: release.generation,
      degraded: wanted.filter(({ failures }) => failures.degraded).length,
      reloads,
      dismissed: slots.filter((slot) => !isShown(slot)).map((slot) => this.#countsOf(slot)),
      leader: leader ? leader.identity : null,
      workers: slots.filter(isShown).flatMap((slot) => this.#snapshotsOf(slot)),
    };
  }

  /** One snapshot for each of the slot's processes. A slot without a process also has one. */
  #snapshotsOf(slot: Slot): WorkerSnapshot[] {
    const workers = workersOf(this.state, slot.index);
    const counts = this.#countsOf(slot);
    const known = workers.length > 0 ? workers : [undefined];
    return known.map((worker) => ({
      ...counts,
      ...processSnapshot(worker, worker && this.#handles.get(worker.id)),
      generation: worker?.generation ?? this.state.release.generation,
      restarts: Object.values(slot.restarts).reduce((sum, count) => sum + count, 0),
      lastExit: slot.lastExit,
      degraded: slot.failures.degraded,
    }));
  }

  /** Counts of all workers that the slot has had, so that no count falls when a worker dies. */
  #countsOf({ index, restarts, abortedRequests }: Slot): SlotCounts {
    const live = workersOf(this.state, index).map(({ id }) => this.#handles.get(id)?.stats);
    return {
      slot: index,
      restartsByCause: restarts,
      abortedRequestsTotal: abortedRequests,
      ...totalsOf([this.#ended.get(index), ...live]),
    };
  }
}

export function totalsOf(
  all: readonly (Partial<WorkerStats> | undefined)[],
): Readonly<Record<CounterName, number>> {
  const totals = COUNTERS.map((name) => {
    const sum = all.reduce((total, stats) => total + (stats?.[name] ?? 0), 0);
    // Rounded, because a sum of floats depends on the order. Prometheus would see a tiny decrease as a reset.
    return [name, Math.round(sum * 1e6) / 1e6] as const;
  });
  return Object.fromEntries(totals) as Record<CounterName, number>;
}

/** Measurements that are unknown before the first heartbeat are `null`. */
function processSnapshot(worker: Worker | undefined, handle: WorkerHandle | undefined) {
  const now = performance.now();
  const gauges = GAUGES.map((name) => [name, handle?.stats?.[name] ?? null] as const);
  return {
    pid: handle?.identity.pid ?? null,
    state: worker?.state ?? ('exited' as const),
    uptimeSeconds: worker ? Math.round(now - worker.startedAt) / 1_000 : 0,
    heartbeatAgeMs: handle?.seenAt === undefined ? null : Math.round(now - handle.seenAt),
    responsive: handle !== undefined && isResponsive(handle, now),
    ...(Object.fromEntries(gauges) as Record<(typeof GAUGES)[number], number | null>),
  };
}

/**
 * The number of connections in the kernel's accept queues, by address. Queues of the same address
 * are summed. An address is missing if its queue cannot be read: the primary holds no TCP socket
 * for it, or the system has no /proc.
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
