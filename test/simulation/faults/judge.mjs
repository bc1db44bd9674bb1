import { Worker } from 'node:worker_threads';
import { withSimulation } from '../bundle.mjs';

/**
 * How long one life may take. With some faults the core handles an event for ever. All lives
 * together have no limit, because a busy machine plays them slowly.
 */
export const LIFE_ENDS_WITHIN_MS = 60_000;

/**
 * Plays lives with a fault in the core until one fails.
 *
 * @returns the seed, the number of lives and the broken invariant. If no life failed, or if a life
 *   took too long, the `problem`. A timeout does not count as found.
 */
export function judge(fault, { seed, runs, lifeEndsWithinMs = LIFE_ENDS_WITHIN_MS }) {
  return withSimulation(
    (simulation) =>
      new Promise((resolve, reject) => {
        const worker = new Worker(new URL('thread.mjs', import.meta.url), {
          workerData: { simulation, seed, runs, shell: fault.shell },
        });
        const timer = setTimeout(() => {
          resolve({ problem: `NOT JUDGED: a life took ${lifeEndsWithinMs / 1_000} s` });
          void worker.terminate();
        }, lifeEndsWithinMs);
        worker.on('message', (message) => {
          if (message === 'ended') timer.refresh();
          else resolve(message);
        });
        worker.once('error', reject);
        worker.once('exit', () => clearTimeout(timer));
      }),
    fault,
  );
}
