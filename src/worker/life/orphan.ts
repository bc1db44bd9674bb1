import cluster from 'node:cluster';
import { setTimeout as delay } from 'node:timers/promises';

/** How long to wait for a primary to exit. A primary exits shortly after it has closed its channels. */
const PRIMARY_GONE_MS = 20;

/** The shutdown times of a worker whose primary is gone. */
export const ORPHAN_SHUTDOWN = { lameDuckMs: 0, drainTimeoutMs: 1_500, killTimeoutMs: 500 };

/** Prevents that node:cluster ends the process at once when its channel closes. */
export function outliveChannel(): void {
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
}

/** Whether the primary has ended. If the app has closed the channel, the primary still runs. */
export async function isPrimaryGone(primaryPid: number): Promise<boolean> {
  await delay(PRIMARY_GONE_MS);
  return process.ppid !== primaryPid;
}
