import { constants, getPriority, setPriority } from 'node:os';
import { workerData } from 'node:worker_threads';
import { Offers } from './offers.js';
import type { ThreadSettings } from './plan.js';
import { ThreadHost, type ThreadMessage } from './thread-host.js';

const { plan, offers, place, niceOnceLoaded } = workerData as ThreadSettings;
const host = new ThreadHost(plan, new Offers(offers), place);

/** The function that piscina calls for each message, once this promise has resolved. */
export const handle = host.start().then(() => {
  becomeNicer(niceOnceLoaded);
  return (message: ThreadMessage): unknown => host.handle(message);
});

/** On Linux a process id of 0 means this thread alone; elsewhere nobody asks for it. */
function becomeNicer(increment: number): void {
  if (increment === 0) return;
  try {
    setPriority(0, Math.min(getPriority(0) + increment, constants.priority.PRIORITY_LOW));
  } catch {
    // A sandbox that forbids it: the thread computes as it has loaded.
  }
}
