import type {
  ClusterSnapshot,
  PrimaryStats,
  SlotCounts,
  WorkerSnapshot,
} from '../snapshot/index.js';
import type { Slot } from './slot.js';
import { isResponsive, type WorkerHandle } from './worker-handle.js';

/** The cluster as it is at `now` (monotonic ms). */
export function takeSnapshot(
  cluster: {
    readonly balancing: string;
    readonly ports: readonly number[];
    readonly desired: number;
    readonly generation: number;
    readonly reloads: ClusterSnapshot['reloads'];
    readonly slots: readonly Slot[];
    readonly surplus: readonly Slot[];
    readonly dismissed: readonly Slot[];
    readonly primary: PrimaryStats;
    readonly minReady: ClusterSnapshot['minReady'];
  },
  now: number,
): ClusterSnapshot {
  const { balancing, ports, desired, generation, reloads, slots, surplus } = cluster;
  return {
    balancing,
    ports,
    desired,
    ready: slots.filter((slot) => slot.ready).length,
    minReady: cluster.minReady,
    generation,
    degraded: slots.filter((slot) => slot.degraded).length,
    reloads: { ...reloads },
    dismissed: cluster.dismissed.map(countsOf),
    primary: cluster.primary,
    workers: [...slots, ...surplus].flatMap((slot) =>
      slot.workers.length === 0
        ? [snapshotOf(slot, undefined, generation, now)]
        : slot.workers.map((worker) => snapshotOf(slot, worker, generation, now)),
    ),
  };
}

function snapshotOf(
  slot: Slot,
  worker: WorkerHandle | undefined,
  generation: number,
  now: number,
): WorkerSnapshot {
  const stats = worker?.stats;
  return {
    ...countsOf(slot),
    pid: worker?.identity.pid ?? null,
    generation: worker?.identity.generation ?? generation,
    state: worker?.state ?? 'exited',
    uptimeSeconds: worker ? Math.round(now - worker.startedAt) / 1_000 : 0,
    restarts: [...slot.restarts.values()].reduce((sum, count) => sum + count, 0),
    lastExit: slot.lastExit,
    degraded: slot.degraded,
    heartbeatAgeMs: worker?.seenAt === undefined ? null : Math.round(now - worker.seenAt),
    responsive: worker !== undefined && isResponsive(worker, now),
    residentMemoryBytes: stats?.residentMemoryBytes ?? null,
    heapUsedBytes: stats?.heapUsedBytes ?? null,
    eventLoopUtilization: stats?.eventLoopUtilization ?? null,
    eventLoopDelayP99Ms: stats?.eventLoopDelayP99Ms ?? null,
    openConnections: stats?.openConnections ?? null,
    requestsInFlight: stats?.requestsInFlight ?? null,
  };
}

/** Of the slot, not of a process: they never fall when a worker dies. */
function countsOf(slot: Slot): SlotCounts {
  return {
    slot: slot.index,
    restartsByCause: Object.fromEntries(slot.restarts),
    abortedRequestsTotal: slot.abortedRequests,
    droppedMessagesTotal: slot.droppedMessages,
    refusedMetricsTotal: slot.refusedMetrics,
    ...slot.totals,
  };
}
