import { workerData } from 'node:worker_threads';
import { Offers } from './offers.js';
import type { ThreadSettings } from './plan.js';
import { ThreadHost, type ThreadMessage } from './thread-host.js';

const { plan, offers, place } = workerData as ThreadSettings;
const host = new ThreadHost(plan, new Offers(offers), place);

/** What piscina calls for each message, once this promise has resolved. */
export const handle = host.start().then(
  () =>
    (message: ThreadMessage): unknown =>
      host.handle(message),
);
