import { parentPort, workerData } from 'node:worker_threads';
import { type HubServerOptions, listenForWorkers } from './hub-server.js';

/** What the primary starts the thread with. */
export interface HubThreadData extends HubServerOptions {
  /** The thread counts in it: a count that stands still tells the primary that it hangs. */
  readonly pulse: Int32Array;
}

/** What it tells the primary. */
export type HubThreadMessage =
  { readonly type: 'listening' } | { readonly type: 'failed'; readonly message: string };

const PULSE_MS = 250;

const data = workerData as HubThreadData;
const primary = parentPort!;
setInterval(() => Atomics.add(data.pulse, 0, 1), PULSE_MS);
listenForWorkers(data).then(
  () => primary.postMessage({ type: 'listening' } satisfies HubThreadMessage),
  ({ message }: Error) =>
    primary.postMessage({ type: 'failed', message } satisfies HubThreadMessage),
);
