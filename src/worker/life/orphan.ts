import cluster from 'node:cluster';
import { setTimeout as delay } from 'node:timers/promises';

/** Wait for an ending primary to exit, which happens shortly after it closes its channels. */
const PRIMARY_GONE_MS = 20;

/** The shutdown times of a worker whose primary is gone. */
export const ORPHAN_SHUTDOWN = { lameDuckMs: 0, drainTimeoutMs: 1_500, killTimeoutMs: 500 };

/** Prevents that node:cluster ends the process at once when its channel closes. */
export function outliveChannel(): void {
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
}

/** Whether the primary has ended. If only the channel was closed, by the app, it has not. */
export async function isPrimaryGone(primaryPid: number): Promise<boolean> {
  await delay(PRIMARY_GONE_MS);
  return process.ppid !== primaryPid;
}
