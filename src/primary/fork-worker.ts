import cluster from 'node:cluster';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessExit } from './policies/exit-cause.policy.js';
import { WorkerHandle } from './worker-handle.js';

/** Set in a worker's environment by the primary; says who forked it and which slot it has. */
export const WORKER_VARIABLE = 'NESTJS_CLUSTER_WORKER';

/** What {@link WORKER_VARIABLE} holds, as JSON. */
export interface WorkerAssignment {
  readonly slot: number;
  readonly generation: number;
  readonly primaryPid: number;
}

/** What a forked process tells. Nothing comes after `exit`. */
export type ProcessEvent =
  | { readonly type: 'message'; readonly message: unknown }
  | { readonly type: 'channel-error'; readonly error: Error }
  | { readonly type: 'exit'; readonly exit: ProcessExit };

/** Messages a worker sent before it died may be read after its exit is known. */
const LAST_WORDS_MS = 200;

/**
 * Starts the user's script again as a worker. `exit` is the only end of it
 * there is: 'disconnect' may come before it, after it or never.
 */
export function forkWorker(
  assignment: WorkerAssignment,
  tell: (event: ProcessEvent) => void,
): WorkerHandle {
  // 'json' because a malformed frame of 'advanced' kills the reader
  // (https://github.com/nodejs/node/issues/61312, in Node 20 for good).
  cluster.setupPrimary({ serialization: 'json' });
  const worker = cluster.fork({ [WORKER_VARIABLE]: JSON.stringify(assignment) });
  // Without this listener a send that fails throws in the primary.
  worker.on('error', (error) => tell({ type: 'channel-error', error }));
  worker.on('message', (message) => tell({ type: 'message', message }));
  const disconnected = new Promise<void>((resolve) => {
    worker.once('disconnect', () => resolve());
  });
  worker.process.once('exit', (code, signal) => {
    void Promise.race([disconnected, delay(LAST_WORDS_MS)]).then(() => {
      tell({ type: 'exit', exit: { code, signal } });
    });
  });
  const { slot, generation } = assignment;
  return new WorkerHandle({ slot, generation, pid: worker.process.pid ?? 0 }, worker);
}
