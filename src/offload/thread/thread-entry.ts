import { workerData } from 'node:worker_threads';
import type { ThreadSettings } from './plan.js';
import { ThreadHost, type ThreadMessage } from './thread-host.js';

const { plan, strict } = workerData as ThreadSettings;
const host = new ThreadHost(plan);

/**
 * What piscina calls for each message. It waits for this promise before it
 * counts the thread as ready. Where it rejects the thread ends, and piscina
 * starts no other: the pool looks after that.
 */
export const handle = host.start(strict).then(
  () =>
    (message: ThreadMessage): unknown =>
      host.handle(message),
);
