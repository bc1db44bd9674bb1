import { GAUGES } from '../contract/snapshot/stats.js';
import {
  type ClusterSnapshot,
  type SlotCounts as CountsInSnapshot,
  type WorkerSnapshot,
  type WorkerStats,
} from '../contract/snapshot/index.js';
import type { ClusterState, Slot, Worker, WorkerId } from '../decide/cluster-state.js';
import { isServed, isWanted, wantedSlots, workersOf } from '../decide/worker/workers.js';
import type { SlotCounts } from './serve/slot-counts.js';
import { isResponsive, type WorkerHandle } from './worker-handle.js';

/** Facts about a cluster that are not in the state of the core. */
export interface Measured {
  readonly shown: Required<
    Pick<
      ClusterSnapshot,
      'balancing' | 'ports' | 'primary' | 'acceptBacklog' | 'listenOverflowsTotal'
    >
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
    droppedMessagesTotal: counts.droppedMessages,
    ...counts.totals(workers.map(({ id }) => find(id)?.stats)),
  };
}
