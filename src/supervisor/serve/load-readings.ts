import { memoryBytes } from '../../contract/options/index.js';
import type { Load } from '../decide/policies/elastic.policy.js';
import type { Listening } from '../listening/listening.interface.js';
import { isResponsive, type WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerTable } from '../processes/worker-table.js';
import { acceptBacklog } from '../listening/accept-backlog.js';
import { residentMemoryBytes } from './resident-memory.js';

/** The interval at which the load is read. */
export const LOAD_INTERVAL_MS = 1_000;

/** A worker that is added needs memory, and so does the one more of a reload. */
const ROOM_FOR = 2;

/** Reads how busy the workers are, and whether `limit` bytes have room for more. Asks for the limit once. */
export function loadReader(
  table: Pick<WorkerTable, 'workers'>,
  listening: Pick<Listening, 'sockets'>,
  limit: () => number = memoryBytes,
  measure: (pid: number) => number | undefined = residentMemoryBytes,
): () => Load {
  let limitBytes: number | undefined;
  return () => {
    limitBytes ??= limit();
    const { workers } = table;
    const sizes = workers.map(({ identity }) => measure(identity.pid) ?? 0);
    const held = sizes.reduce((sum, bytes) => sum + bytes, measure(process.pid) ?? 0);
    const waiting = acceptBacklog(listening).map(({ connections }) => connections);
    return {
      utilization: meanUtilization(workers.filter(({ state }) => state === 'ready')),
      waiting: waiting.reduce((sum, connections) => sum + connections, 0),
      hasRoom: held + ROOM_FOR * Math.max(0, ...sizes) <= limitBytes,
    };
  };
}

/** A worker is as busy as the busier of its event loop and its threads. */
function busyShare({ stats }: WorkerHandle): number {
  return Math.max(stats?.eventLoopUtilization ?? 0, stats?.threadUtilization ?? 0);
}

function meanUtilization(workers: readonly WorkerHandle[]): number {
  const now = performance.now();
  // A worker that does not answer reports nothing: it is as busy as can be.
  const each = workers.map((worker) => (isResponsive(worker, now) ? busyShare(worker) : 1));
  return each.reduce((sum, one) => sum + one, 0) / Math.max(1, each.length);
}
