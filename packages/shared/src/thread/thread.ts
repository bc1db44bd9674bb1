import { parentPort, workerData } from 'node:worker_threads';
import { type HubServerOptions, listenForWorkers } from './hub-server.js';

/** The data with which the primary starts the thread. */
export interface HubThreadData extends HubServerOptions {
  /** A counter that the thread increments. If it stops, the primary knows that the thread hangs. */
  readonly pulse: Int32Array;
}

/** The messages to the primary. */
export type HubThreadMessage =
  | { readonly type: 'listening' }
  | { readonly type: 'failed'; readonly message: string }
  /** The answer to a {@link HubMove}. */
  | { readonly type: 'moved'; readonly problem?: string | undefined };

/** The primary's message that the socket's file was removed, with the path for a new socket. */
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
