import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { withSimulation } from '../bundle.mjs';

const CORE = 'src/decide/';

/**
 * The faults of `faults.diff`, which the simulation has to find. Below the line `@ FILE` each fault
 * has its words, the text `find`, which occurs once in the file, with `-` before each line, and with
 * `+` what replaces it. If only rare lives show a fault, it has a `seed`, at which the tests begin.
 * Faults outside the core only show with the real supervisor around it (`shell`).
 */
export const FAULTS = readFileSync(new URL('faults.diff', import.meta.url), 'utf8')
  .split(/^@ /m)
  .slice(1)
  .flatMap((part) => {
    const [file = '', ...faults] = part.trimEnd().split('\n\n');
    return faults.map((fault) => ({ file, shell: !file.startsWith(CORE), ...readFault(fault) }));
  });

function readFault(text) {
  const [words = '', ...lines] = text.split('\n');
  const [, what, seed = '1'] = /^(.*?)(?: \(seed (\d+)\))?$/.exec(words);
  const those = (sign) =>
    lines
      .filter((line) => line.startsWith(sign))
      .map((line) => line.slice(1))
      .join('\n');
  return { what, seed: Number(seed), find: those('-'), replace: those('+') };
}

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
