// Puts small faults into the core, one at a time, and has the simulation find them: npm run simulate:faults -- --help
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { FAULTS } from './faults.mjs';
import { judge, LIFE_ENDS_WITHIN_MS } from './judge.mjs';

const HELP = `npm run simulate:faults -- [options]

  --only TEXT    faults in whose words or file TEXT occurs
  --seed N       the first life; default 1
  --runs N       lives that have to find a fault; default 10000

Puts each fault of test/simulation/faults/faults.diff into a copy of the core.
Ends with 0 where the simulation finds every one, else with 1. A fault with which one life
takes longer than ${LIFE_ENDS_WITHIN_MS / 1_000} s is not judged, and not found.`;

const { help, only = '', seed, runs } = settings();
if (help) console.log(HELP);
else process.exitCode = await main();

async function main() {
  const faults = FAULTS.filter(({ what, file }) => `${what} ${file}`.includes(only));
  if (faults.length === 0) return fail(`no fault has '${only}' in its words or file`);
  const found = [];
  const waiting = [...faults.entries()];
  const next = async () => {
    for (let entry = waiting.shift(); entry !== undefined; entry = waiting.shift()) {
      const [index, fault] = entry;
      found[index] = await judge(fault, { seed, runs }).catch((error) => ({
        problem: error.message,
      }));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, next));
  console.log('| fault | file | seed | lives | invariant |\n| --- | --- | --- | --- | --- |');
  for (const [index, { what, file }] of faults.entries()) {
    const { seed: at, lives, invariant, problem } = found[index];
    console.log(
      `| ${[what, file.split('/').pop(), at ?? '', lives ?? '', invariant ?? problem].join(' | ')} |`,
    );
  }
  const missed = found.filter(({ problem }) => problem !== undefined).length;
  console.log(`\n${faults.length - missed} of ${faults.length} faults found`);
  return missed === 0 ? 0 : 1;
}

function settings() {
  try {
    const { values } = parseArgs({
      options: {
        help: { type: 'boolean' },
        only: { type: 'string' },
        seed: { type: 'string', default: '1' },
        runs: { type: 'string', default: '10000' },
      },
    });
    return { ...values, seed: number('--seed', values.seed), runs: number('--runs', values.runs) };
  } catch (error) {
    process.exit(fail(error.message));
  }
}

function number(option, value) {
  if (/^[1-9]\d*$/.test(value)) return Number(value);
  throw new Error(`${option} takes a whole number from 1 on, not '${value}'`);
}

function fail(message) {
  console.error(`error: ${message}; see --help`);
  return 2;
}
