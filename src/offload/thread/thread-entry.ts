import { workerData } from 'node:worker_threads';
import type { ThreadPlan } from './plan.js';
import { ThreadHost, type ThreadMessage } from './thread-host.js';

const host = new ThreadHost(workerData as ThreadPlan);

/**
 * What piscina calls for each message. It waits for this promise before it
 * counts the thread as ready, and the promise never rejects: piscina would give
 * the thread up, and start no other.
 */
export const handle = host.start().then(
  () =>
    (message: ThreadMessage): unknown =>
      host.handle(message),
);
