import { Worker } from 'node:worker_threads';
import { withSimulation } from '../bundle.mjs';

/** A fault may have the core go in circles, in which no event ends; a busy machine may be slow. */
export const ENDS_WITHIN_MS = 120_000;

/**
 * Plays lives with a fault in the core until one fails.
 *
 * @returns the seed, how many lives it took and the invariant; or the `problem`: no life failed, or
 * the time was over, which says nothing of the invariants.
 */
export function judge(fault, { seed, runs, endsWithinMs = ENDS_WITHIN_MS }) {
  return withSimulation(
    (simulation) =>
      new Promise((resolve, reject) => {
        const worker = new Worker(new URL('thread.mjs', import.meta.url), {
          workerData: { simulation, seed, runs, shell: fault.shell },
        });
        const timer = setTimeout(() => {
          resolve({ problem: `NOT JUDGED within ${endsWithinMs / 1_000} s` });
          void worker.terminate();
        }, endsWithinMs);
        worker.once('message', (failure) =>
          resolve(failure ?? { problem: `NOT FOUND in ${runs} lives` }),
        );
        worker.once('error', reject);
        worker.once('exit', () => clearTimeout(timer));
      }),
    fault,
  );
}
