import { Worker } from 'node:worker_threads';
import { withSimulation } from '../bundle.mjs';

/** How long to play lives with one fault. With some faults the core handles an event for ever. */
export const ENDS_WITHIN_MS = 120_000;

/**
 * Plays lives with a fault in the core until one fails.
 *
 * @returns the seed, the number of lives and the broken invariant. If no life failed in time, the
 *   `problem`. A timeout does not count as found.
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
