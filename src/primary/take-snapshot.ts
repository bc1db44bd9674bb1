import { queueLengths } from '../contract/process/accept-queue.js';
import { COUNTERS, GAUGES, type CounterName, type WorkerStats } from '../contract/stats.js';
import type {
  Backlog,
  ClusterSnapshot,
  SlotCounts as CountsInSnapshot,
  WorkerSnapshot,
} from '../contract/snapshot/index.js';
import type { ClusterState, Slot, Worker, WorkerId } from '../decide/cluster-state.js';
import { isServed, isWanted, wantedSlots, workersOf } from '../decide/worker/workers.js';
import type { Listening } from './listening/listening.js';
import { isResponsive, type WorkerHandle } from './worker-handle.js';

/** Counts over all workers of a slot since the primary started. */
export class SlotCounts {
  /** The counts of the workers that have exited. */
  #ended: Partial<WorkerStats> = {};

  /** Adds the counts of a worker that has exited. */
  keep(stats: Partial<WorkerStats> | undefined): void {
    this.#ended = this.totals([stats]);
  }

  /** @param live the last statistics of the workers that run now. */
  totals(
    live: readonly (Partial<WorkerStats> | undefined)[],
  ): Readonly<Record<CounterName, number>> {
    const totals = COUNTERS.map((name) => {
      const sum = [this.#ended, ...live].reduce((total, stats) => total + (stats?.[name] ?? 0), 0);
      // Rounded, because a sum of floats depends on the order. Prometheus would take a tiny fall for a restart.
      return [name, Math.round(sum * 1e6) / 1e6] as const;
    });
    return Object.fromEntries(totals) as Record<CounterName, number>;
  }
}

/** Facts about a cluster that are not in the state of the core. */
export interface Measured {
  readonly shown: Required<
    Pick<ClusterSnapshot, 'balancing' | 'ports' | 'primary' | 'acceptBacklog'>
  >;
  readonly find: (worker: WorkerId) => WorkerHandle | undefined;
  readonly countsIn: (slot: number) => SlotCounts;
}

/** The cluster as it is at `now` (monotonic ms). */
export function takeSnapshot(
  state: ClusterState,
  measured: Measured,
  now: number,
): ClusterSnapshot {
  const { desired, release, slots, minReady, reloads, leadership } = state;
  const wanted = wantedSlots(state);
  const isShown = ({ index }: Slot): boolean =>
    isWanted(state, index) || workersOf(state, index).length > 0;
  return {
    ...measured.shown,
    desired,
    ready: wanted.filter((slot) => isServed(state, slot)).length,
    minReady,
    generation: release.generation,
    degraded: wanted.filter(({ failures }) => failures.degraded).length,
    reloads,
    dismissed: slots.filter((slot) => !isShown(slot)).map((slot) => countsOf(slot, [], measured)),
    leader: measured.find(leadership.leader ?? 0)?.identity ?? null,
    workers: slots.filter(isShown).flatMap((slot) => slotSnapshots(state, slot, measured, now)),
  };
}

/** A snapshot of each process of the slot. If the slot has no process, one snapshot without a process. */
function slotSnapshots(
  state: ClusterState,
  slot: Slot,
  measured: Measured,
  now: number,
): WorkerSnapshot[] {
  const workers = workersOf(state, slot.index);
  const counts = countsOf(slot, workers, measured);
  const known = workers.length > 0 ? workers : [undefined];
  return known.map((worker) => ({
    ...counts,
    ...processSnapshot(worker, worker && measured.find(worker.id), now),
    generation: worker?.generation ?? state.release.generation,
    restarts: Object.values(slot.restarts).reduce((sum, count) => sum + count, 0),
    lastExit: slot.lastExit,
    degraded: slot.failures.degraded,
  }));
}

function processSnapshot(
  worker: Worker | undefined,
  handle: WorkerHandle | undefined,
  now: number,
) {
  return {
    pid: handle?.identity.pid ?? null,
    state: worker?.state ?? ('exited' as const),
    uptimeSeconds: worker ? Math.round(now - worker.startedAt) / 1_000 : 0,
    heartbeatAgeMs: handle?.seenAt === undefined ? null : Math.round(now - handle.seenAt),
    responsive: handle !== undefined && isResponsive(handle, now),
    ...gaugesOf(handle?.stats),
  };
}

/** Measurements that are unknown before the first heartbeat are `null`. */
function gaugesOf(stats: Partial<WorkerStats> | undefined) {
  const values = GAUGES.map((name) => [name, stats?.[name] ?? null] as const);
  return Object.fromEntries(values) as Record<(typeof GAUGES)[number], number | null>;
}

/** Counts of all workers that the slot has had, so that no count falls when a worker dies. */
function countsOf(
  { index, restarts, abortedRequests }: Slot,
  workers: readonly Worker[],
  { find, countsIn }: Measured,
): CountsInSnapshot {
  const counts = countsIn(index);
  return {
    slot: index,
    restartsByCause: restarts,
    abortedRequestsTotal: abortedRequests,
    ...counts.totals(workers.map(({ id }) => find(id)?.stats)),
  };
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
