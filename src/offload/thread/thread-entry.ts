import { constants, getPriority, setPriority } from 'node:os';
import { workerData } from 'node:worker_threads';
import { openCompileCache } from '../../contract/process/compile-cache.js';
import { ThreadHost, type ThreadMessage, type ThreadSettings } from './thread-host.js';

/**
 * How much a thread raises its nice value, so that the event loop comes first when cores are scarce.
 * With 10, a busy thread gets about a tenth of a core that the event loop also wants.
 */
const NICE_INCREMENT = 10;

const { plan, compileCache } = workerData as ThreadSettings;
if (compileCache !== undefined) openCompileCache(compileCache);
const host = new ThreadHost(plan);

/** The function that piscina calls for each message, once this promise has resolved. */
export const handle = host.start().then(() => {
  // On other systems a thread would change the nice value of its process.
  if (process.platform === 'linux') becomeNicer();
  return (message: ThreadMessage): unknown => host.handle(message);
});

/**
 * Raises the nice value only after loading. Calls wait for the thread while it loads, and with a
 * higher nice value it would get almost no time on a fully used machine. Id 0 means only this
 * thread.
 */
function becomeNicer(): void {
  try {
    setPriority(0, Math.min(getPriority(0) + NICE_INCREMENT, constants.priority.PRIORITY_LOW));
  } catch {
    // A sandbox may forbid this: the nice value then stays as it is.
  }
}
