import { constants, getPriority, setPriority } from 'node:os';
import { workerData } from 'node:worker_threads';
import { openCompileCache } from '../../contract/process/compile-cache.js';
import { ThreadHost, type ThreadMessage, type ThreadSettings } from './thread-host.js';

/**
 * A higher nice value gives the event loop priority if cores are scarce. With 10, a busy thread gets
 * about a tenth of a core that it shares with the event loop.
 */
const NICE_INCREMENT = 10;

const { plan, compileCache } = workerData as ThreadSettings;
if (compileCache !== undefined) openCompileCache(compileCache);
const host = new ThreadHost(plan);

/** Piscina calls this function for each message, after the promise has resolved. */
export const handle = host.start().then(() => {
  // On other systems, a thread would change the nice value of the whole process.
  if (process.platform === 'linux') becomeNicer();
  return (message: ThreadMessage): unknown => host.handle(message);
});

/**
 * Called only after loading: with a higher nice value, loading would take very long on a busy machine,
 * and calls wait for it. Id 0 is this thread.
 */
function becomeNicer(): void {
  try {
    setPriority(0, Math.min(getPriority(0) + NICE_INCREMENT, constants.priority.PRIORITY_LOW));
  } catch {
    // A sandbox may forbid this.
  }
}
