import cluster, { type Worker } from 'node:cluster';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessExit } from './policies/exit-cause.policy.js';

/** Set in a worker's environment by the primary; says who forked it and which slot it has. */
export const WORKER_VARIABLE = 'NESTJS_CLUSTER_WORKER';

/** What {@link WORKER_VARIABLE} holds, as JSON. */
export interface WorkerAssignment {
  readonly slot: number;
  readonly generation: number;
  readonly primaryPid: number;
}

/** What a forked process tells. Nothing is told after `exit`. */
export interface WorkerListener {
  message(message: unknown): void;
  channelError(error: Error): void;
  exit(exit: ProcessExit): void;
}

/** Messages a worker sent before it died may be read after its exit is known. */
const LAST_WORDS_MS = 200;

/** Starts the user's script again as a worker. */
export function forkWorker(assignment: WorkerAssignment): Worker {
  // 'json' because a malformed frame of 'advanced' kills the reader
  // (https://github.com/nodejs/node/issues/61312, in Node 20 for good).
  cluster.setupPrimary({ serialization: 'json' });
  return cluster.fork({ [WORKER_VARIABLE]: JSON.stringify(assignment) });
}

/**
 * Listens to a forked process. `exit` is the only end there is: 'disconnect'
 * may come before it, after it or never.
 */
export function listenToWorker(worker: Worker, listener: WorkerListener): void {
  // Without this listener a send that fails throws in the primary.
  worker.on('error', (error) => listener.channelError(error));
  worker.on('message', (message) => listener.message(message));
  const disconnected = new Promise<void>((resolve) => {
    worker.once('disconnect', () => resolve());
  });
  worker.process.once('exit', (code, signal) => {
    void Promise.race([disconnected, delay(LAST_WORDS_MS)]).then(() => {
      listener.exit({ code, signal });
    });
  });
}
