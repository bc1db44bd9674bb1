import cluster from 'node:cluster';
import { setTimeout as delay } from 'node:timers/promises';

/** A primary that ends closes its channels a moment before it is gone. */
const PRIMARY_GONE_MS = 20;

/** Without a primary a worker finishes what it can in this time. */
export const ORPHAN_SHUTDOWN = { lameDuckMs: 0, drainTimeoutMs: 1_500, killTimeoutMs: 500 };

/** Keeps node:cluster from ending the process in the middle of a response when its channel closes. */
export function outliveChannel(): void {
  if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;
}

/**
 * The channel to the primary has been closed. The app may have done that itself: then the primary
 * and the others go on.
 */
export async function isPrimaryGone(primaryPid: number): Promise<boolean> {
  await delay(PRIMARY_GONE_MS);
  return process.ppid !== primaryPid;
}
