// Puts small faults into the core, one at a time, and has the simulation find them: npm run simulate:faults -- --help
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { FAULTS, judge, LIFE_ENDS_WITHIN_MS } from './faults.mjs';

const HELP = `npm run simulate:faults -- [options]

  --only TEXT    faults in whose words or file TEXT occurs
  --seed N       the first life; default: the fault's own
  --runs N       lives that have to find a fault; default 10000

Puts each fault of test/simulation/faults/faults.diff into a copy of the core.
Ends with 0 where the simulation finds every one, else with 1. A fault with which one life
takes longer than ${LIFE_ENDS_WITHIN_MS / 1_000} s is not judged, and not found.`;

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    only: { type: 'string', default: '' },
    seed: { type: 'string' },
    runs: { type: 'string', default: '10000' },
  },
});
if (values.help) console.log(HELP);
else process.exitCode = await main(values);

async function main({ only, seed, runs }) {
  const faults = FAULTS.filter(({ what, file }) => `${what} ${file}`.includes(only));
  const found = [];
  const waiting = [...faults.entries()];
  const next = async () => {
    for (let entry = waiting.shift(); entry !== undefined; entry = waiting.shift()) {
      const [index, fault] = entry;
      const lives = { seed: Number(seed ?? fault.seed), runs: Number(runs) };
      found[index] = await judge(fault, lives).catch(({ message }) => ({ problem: message }));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, next));
  console.log('| fault | file | seed | lives | invariant |\n| --- | --- | --- | --- | --- |');
  for (const [index, { what, file }] of faults.entries()) {
    const { seed: at = '', lives = '', invariant, problem } = found[index];
    const cells = [what, file.split('/').pop(), at, lives, invariant ?? problem];
    console.log(`| ${cells.join(' | ')} |`);
  }
  const missed = found.filter(({ problem }) => problem !== undefined).length;
  console.log(`\n${faults.length - missed} of ${faults.length} faults found`);
  return missed === 0 && faults.length > 0 ? 0 : 1;
}
