import { parentPort, workerData } from 'node:worker_threads';
import { type HubServerOptions, listenForWorkers } from './hub-server.js';

/** What the primary starts the thread with. */
export interface HubThreadData extends HubServerOptions {
  /** The thread counts in it: a count that stands still tells the primary that it hangs. */
  readonly pulse: Int32Array;
}

/** What it tells the primary. */
export type HubThreadMessage =
  | { readonly type: 'listening' }
  | { readonly type: 'failed'; readonly message: string }
  /** It listens where it was told to by a {@link HubMove}; or not, and why. */
  | { readonly type: 'moved'; readonly problem?: string | undefined };

/** What the primary tells it: its socket was removed. */
export interface HubMove {
  readonly path: string;
}

const PULSE_MS = 250;

const data = workerData as HubThreadData;
const primary = parentPort!;
setInterval(() => Atomics.add(data.pulse, 0, 1), PULSE_MS);
const tell = (message: HubThreadMessage): void => primary.postMessage(message);
listenForWorkers(data).then(
  ({ move }) => {
    primary.on('message', ({ path }: HubMove) => {
      move(path).then(
        () => tell({ type: 'moved' }),
        ({ message }: Error) => tell({ type: 'moved', problem: message }),
      );
    });
    tell({ type: 'listening' });
  },
  ({ message }: Error) => tell({ type: 'failed', message }),
);
