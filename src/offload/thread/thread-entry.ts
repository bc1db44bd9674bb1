import { constants, getPriority, setPriority } from 'node:os';
import { workerData } from 'node:worker_threads';
import type { ThreadSettings } from './plan.js';
import { ThreadHost, type ThreadMessage } from './thread-host.js';

const { plan, niceIncrement } = workerData as ThreadSettings;
const host = new ThreadHost(plan);

/** The function that piscina calls for each message, once this promise has resolved. */
export const handle = host.start().then(() => {
  if (niceIncrement > 0) becomeNicer();
  return (message: ThreadMessage): unknown => host.handle(message);
});

/**
 * Only now: calls wait for the thread while it loads, and with its nice value it would get next to
 * nothing on a machine whose cores are all taken. The process id 0 means this thread alone.
 */
function becomeNicer(): void {
  try {
    setPriority(0, Math.min(getPriority(0) + niceIncrement, constants.priority.PRIORITY_LOW));
  } catch {
    // A sandbox that forbids it: the thread computes as it has loaded.
  }
}
