import type { ClusterSnapshot, WorkerSnapshot } from './cluster-snapshot.js';
import type { WorkerStats } from '../stats.js';
import type { WorkerIdentity } from './worker-identity.js';

/** A worker that has not been restarted, as a process without a primary and a fake cluster show it. */
export function workerSnapshot(
  identity: WorkerIdentity,
  stats: WorkerStats,
  { state, uptimeSeconds }: Pick<WorkerSnapshot, 'state' | 'uptimeSeconds'>,
): WorkerSnapshot {
  return {
    ...identity,
    state,
    uptimeSeconds,
    restarts: 0,
    restartsByCause: {},
    lastExit: null,
    degraded: false,
    abortedRequestsTotal: 0,
    heartbeatAgeMs: 0,
    responsive: true,
    ...stats,
  };
}

/** A cluster of such workers, without a primary. */
export function snapshotOf(
  workers: readonly WorkerSnapshot[],
  about: Pick<ClusterSnapshot, 'balancing' | 'minReady' | 'generation' | 'leader'>,
): ClusterSnapshot {
  return {
    ...about,
    ports: [],
    desired: workers.length,
    ready: workers.filter(({ state }) => state === 'ready').length,
    degraded: 0,
    reloads: { completed: 0, aborted: 0, reverted: 0 },
    dismissed: [],
    workers,
    primary: null,
  };
}
