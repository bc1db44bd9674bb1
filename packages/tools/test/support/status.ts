import type { WorkerSnapshot } from 'nestjs-cluster/bootstrap';
import type { ClusterStatus, ControlClient } from '../../src/cluster.js';

/** A worker that is ready, with these differences. */
export function workerOf(more: Partial<WorkerSnapshot>): WorkerSnapshot {
  const ready = { slot: 0, pid: 1, generation: 1, state: 'ready', restarts: 0, lastExit: null };
  return { ...ready, ...more } as WorkerSnapshot;
}

/** The status of a cluster with these workers. */
export function statusOf(
  workers: readonly Partial<WorkerSnapshot>[],
  cluster: Partial<ClusterStatus['cluster']> = {},
): ClusterStatus {
  return {
    name: 'shop',
    pid: 4711,
    options: { admin: null },
    cluster: { status: 'up', ready: workers.length, workers: workers.map(workerOf), ...cluster },
    primary: null,
  };
}

/** A client of a cluster that a test plays. */
export function clientOf(play: {
  status?: () => ClusterStatus;
  post?: (path: string, body?: object) => Promise<unknown>;
}): ControlClient {
  const { status = () => statusOf([{}]), post = async () => ({}) } = play;
  return { status: async () => status(), post } as unknown as ControlClient;
}
