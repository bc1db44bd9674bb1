import type { AgedSnapshot, ClusterSnapshot, WorkerSnapshot } from '../snapshot/index.js';

type MinReady = ClusterSnapshot['minReady'];

/** Whether enough workers are ready. */
export interface Judgement {
  /** `degraded`: enough are, and something is wrong with others. */
  readonly status: 'up' | 'degraded' | 'down';
  /** What is wrong, in words. */
  readonly reason?: string | undefined;
}

/** Judges the cluster. A worker that is ready and does not answer serves nobody: it does not count. */
export function judgeCluster(snapshot: ClusterSnapshot, minReady: MinReady): Judgement {
  const { desired, degraded, workers } = snapshot;
  const ready = workers.filter(({ state }) => state === 'ready');
  const serving = new Set(ready.filter(({ responsive }) => responsive).map(({ slot }) => slot));
  const mute = new Set(ready.map(({ slot }) => slot).filter((slot) => !serving.has(slot)));
  const silent = mute.size === 0 ? '' : `; ${listWorkers([...mute])} not answer`;
  const needed = neededWorkers(minReady, desired);
  if (serving.size < needed) {
    return {
      status: 'down',
      reason: `${serving.size} of ${needed} needed workers are ready${silent}`,
    };
  }
  if (degraded > 0) {
    return {
      status: 'degraded',
      reason: `${degraded} of ${desired} slots in a crash loop${silent}`,
    };
  }
  if (mute.size > 0) return { status: 'degraded', reason: `${listWorkers([...mute])} not answer` };
  return { status: 'up' };
}

function listWorkers(slots: readonly number[]): string {
  return slots.length === 1 ? `worker ${slots[0]} does` : `workers ${slots.join(', ')} do`;
}

function neededWorkers(minReady: MinReady, desired: number): number {
  if (minReady === 'all') return desired;
  return minReady < 1 ? Math.ceil(minReady * desired) : minReady;
}

/** The cluster as `/health` shows it. */
export function describeCluster({ snapshot, ageMs }: AgedSnapshot) {
  const { desired, ready, generation, degraded, balancing, ports, workers } = snapshot;
  return {
    desired,
    ready,
    generation,
    degraded,
    balancing,
    ...(ports.length > 0 && { ports }),
    // Only a snapshot that the primary did not confirm has an age.
    ...(ageMs > 0 && { snapshotAgeMs: ageMs }),
    workers: workers.map(describeWorker),
  };
}

/** Field by field: what is added to a snapshot is not published by accident. */
function describeWorker(worker: WorkerSnapshot) {
  return {
    slot: worker.slot,
    pid: worker.pid,
    generation: worker.generation,
    state: worker.state,
    uptimeSeconds: worker.uptimeSeconds,
    restarts: worker.restarts,
    lastExit: worker.lastExit,
    heartbeatAgeMs: worker.heartbeatAgeMs,
    residentMemoryBytes: worker.residentMemoryBytes,
    heapUsedBytes: worker.heapUsedBytes,
    eventLoopUtilization: worker.eventLoopUtilization,
    eventLoopDelayP99Ms: worker.eventLoopDelayP99Ms,
    openConnections: worker.openConnections,
    requestsInFlight: worker.requestsInFlight,
    requestsTotal: worker.requestsTotal,
  };
}
