import { readFileSync } from 'node:fs';

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
