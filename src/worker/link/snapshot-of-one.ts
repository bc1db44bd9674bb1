import type {
  ClusterSnapshot,
  WorkerIdentity,
  WorkerState,
  WorkerStats,
} from '../../contract/snapshot/index.js';

/** The snapshot of a single process, as a cluster with one worker. */
export function snapshotOfOne(
  identity: WorkerIdentity,
  state: WorkerState,
  stats: WorkerStats,
  cluster: Pick<ClusterSnapshot, 'balancing' | 'minReady'>,
): ClusterSnapshot {
  const isReady = state === 'ready';
  return {
    ...cluster,
    ports: [],
    desired: 1,
    ready: isReady ? 1 : 0,
    generation: identity.generation,
    degraded: 0,
    reloads: { completed: 0, aborted: 0, reverted: 0 },
    dismissed: [],
    leader: isReady ? identity : null,
    primary: null,
    workers: [
      {
        ...identity,
        state,
        uptimeSeconds: Math.round(process.uptime() * 1_000) / 1_000,
        restarts: 0,
        restartsByCause: {},
        lastExit: null,
        degraded: false,
        abortedRequestsTotal: 0,
        droppedMessagesTotal: 0,
        heartbeatAgeMs: 0,
        responsive: true,
        ...stats,
      },
    ],
  };
}
