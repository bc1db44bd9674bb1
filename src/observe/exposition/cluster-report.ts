import { IN_HEALTH, pick } from '../../contract/stats.js';
import type {
  AgedSnapshot,
  ClusterSnapshot,
  WorkerSnapshot,
} from '../../contract/snapshot/types.js';

type MinReady = ClusterSnapshot['minReady'];

export interface Judgement {
  /** `degraded`: enough workers are ready, but other workers have problems. */
  readonly status: 'up' | 'degraded' | 'down';
  readonly reason?: string | undefined;
}

/**
 * Judges the cluster by the number of slots with a ready worker that answers heartbeats. Blocked or
 * stopped workers do not count.
 *
 * @param ownPid the pid of this process. Its worker counts even without a heartbeat.
 */
export function judgeCluster(
  snapshot: ClusterSnapshot,
  minReady: MinReady,
  ownPid?: number,
): Judgement {
  const { desired, degraded, workers } = snapshot;
  const ready = workers.filter(({ state }) => state === 'ready');
  const answering = ready.filter(({ pid, responsive }) => responsive || pid === ownPid);
  const serving = new Set(answering.map(({ slot }) => slot)).size;
  const silent = ready.length - answering.length;
  const notAnswering =
    silent === 1 ? '1 worker does not answer' : `${silent} workers do not answer`;
  const needed = neededWorkers(minReady, desired);
  if (serving < needed) {
    const count = `${serving} of ${needed} required workers are ready`;
    return {
      status: 'down',
      reason: silent === 0 ? count : `${count} and answer; ${notAnswering}`,
    };
  }
  const troubles = [
    ...(degraded > 0 ? [`${degraded} of ${desired} workers are in a crash loop`] : []),
    ...(silent > 0 ? [notAnswering] : []),
  ];
  return troubles.length === 0
    ? { status: 'up' }
    : { status: 'degraded', reason: troubles.join('; ') };
}

function neededWorkers(minReady: MinReady, desired: number): number {
  if (minReady === 'all') return desired;
  return minReady < 1 ? Math.ceil(minReady * desired) : minReady;
}

/** The cluster's part of a `/health` response. */
export function describeCluster({ snapshot, ageMs }: AgedSnapshot) {
  const { desired, ready, generation, degraded, balancing, ports, workers } = snapshot;
  const { acceptBacklog } = snapshot;
  return {
    desired,
    ready,
    generation,
    degraded,
    balancing,
    ...(ports.length > 0 && { ports }),
    ...(acceptBacklog && {
      acceptBacklog: acceptBacklog.reduce((sum, { connections }) => sum + connections, 0),
    }),
    // The age is above 0 only if the primary did not answer.
    ...(ageMs > 0 && { snapshotAgeMs: ageMs }),
    workers: workers.map(describeWorker),
  };
}

/** Lists each field, so that a new field of snapshots is not published by accident. */
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
    ...pick(worker, IN_HEALTH),
  };
}

/** A health report in the format of @nestjs/terminus, created without that package. */
export interface HealthReport {
  readonly status: number;
  readonly report: object;
}

/** The primary's health report. `ready` omits the primary's own measurements. */
export function healthReport(snapshot: ClusterSnapshot, what: 'whole' | 'ready'): HealthReport {
  const { primary, minReady } = snapshot;
  return terminusReport({
    cluster: {
      ...describeCluster({ snapshot, ageMs: 0 }),
      ...judgeCluster(snapshot, minReady),
    },
    ...(what === 'whole' && primary !== null && { primary: { ...primary, status: 'up' } }),
  });
}

/** The report of `/health/live`. It is empty, because any response shows that the primary is alive. */
export const ALIVE: HealthReport = terminusReport({});

function terminusReport(
  details: Readonly<Record<string, Pick<Judgement, 'status'>>>,
): HealthReport {
  const entries = Object.entries(details);
  const down = entries.filter(([, { status }]) => status === 'down');
  const rest = entries.filter(([, { status }]) => status !== 'down');
  const isDegraded = rest.some(([, { status }]) => status === 'degraded');
  const status = down.length > 0 ? 'error' : isDegraded ? 'degraded' : 'ok';
  const [info, error] = [Object.fromEntries(rest), Object.fromEntries(down)];
  return { status: down.length > 0 ? 503 : 200, report: { status, info, error, details } };
}
