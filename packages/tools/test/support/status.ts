import type { ClusterStatus, ControlClient, WorkerReport } from '../../src/cluster.js';

/** A worker that is ready, with these differences. */
export function workerOf(more: Partial<WorkerReport>): WorkerReport {
  return {
    slot: 0,
    pid: 1,
    generation: 1,
    state: 'ready',
    uptimeSeconds: 1,
    restarts: 0,
    lastExit: null,
    heartbeatAgeMs: 0,
    residentMemoryBytes: null,
    heapUsedBytes: null,
    eventLoopUtilization: null,
    eventLoopDelayP99Ms: null,
    openConnections: null,
    requestsInFlight: null,
    requestsTotal: 0,
    ...more,
  };
}

/** The status of a cluster with these workers. */
export function statusOf(
  workers: readonly Partial<WorkerReport>[],
  cluster: Partial<ClusterStatus['cluster']> = {},
): ClusterStatus {
  return {
    name: 'shop',
    pid: 4711,
    version: '1.0.0',
    node: '24.0.0',
    options: { admin: null },
    cluster: {
      status: 'up',
      desired: workers.length,
      ready: workers.length,
      generation: 1,
      degraded: 0,
      restartsByCause: {},
      workers: workers.map(workerOf),
      ...cluster,
    },
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
