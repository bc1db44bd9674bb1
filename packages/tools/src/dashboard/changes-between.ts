import type { WorkerSnapshot } from 'nestjs-cluster/bootstrap';
import type { ClusterStatus } from '../cluster.js';

/** A line under "Events" on the page. */
export interface LogEntry {
  /** ISO 8601, UTC. */
  readonly at: string;
  readonly level: 'info' | 'warn' | 'error';
  readonly text: string;
}

/** Describes what happened between two reports of the same primary: starts, states and ends of workers. */
export function changesBetween(
  before: ClusterStatus | undefined,
  { cluster }: ClusterStatus,
  at: string,
): readonly LogEntry[] {
  if (before === undefined) return [];
  const entries: LogEntry[] = [];
  const old = new Map(before.cluster.workers.map((worker) => [worker.pid, worker]));
  const now = new Set(cluster.workers.map(({ pid }) => pid));
  for (const worker of before.cluster.workers) {
    if (worker.pid === null || now.has(worker.pid)) continue;
    const slot = cluster.workers.find((each) => each.slot === worker.slot);
    const cause = slot?.lastExit?.cause;
    const failed = slot !== undefined && slot.restarts > worker.restarts;
    const text = `${nameOf(worker)} ended${cause === undefined ? '' : ` (cause=${cause})`}`;
    entries.push({ at, level: failed ? 'error' : 'info', text });
  }
  for (const worker of cluster.workers) {
    if (worker.pid === null || old.get(worker.pid)?.state === worker.state) continue;
    entries.push({ at, level: 'info', text: `${nameOf(worker)} is ${worker.state}` });
  }
  const { status, reason = '' } = cluster;
  if (status !== before.cluster.status || reason !== (before.cluster.reason ?? '')) {
    const text = `the cluster is ${status}${reason && `: ${reason}`}`;
    entries.push({ at, level: status === 'up' ? 'info' : 'warn', text });
  }
  return entries;
}

function nameOf({ slot, generation, pid }: WorkerSnapshot): string {
  return `worker=${slot} gen=${generation} pid=${pid}`;
}
