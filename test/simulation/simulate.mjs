// Plays lives of a cluster in a simulated world: npm run simulate -- --help
import { parseArgs } from 'node:util';
import { withSimulation } from './bundle.mjs';

const HELP = `npm run simulate -- [options]

  --seed N    the life to play, or the first of several; default 1
  --runs N    how many lives, one for each seed from N on; default 1 with --seed, else 10000
  --shell     with the real supervisor around the core
  --path P    the shortest form of a failure of that seed, as a run has printed it

Ends with 0 where every invariant holds, else with 1.`;

const { values } = parseArgs({
  options: {
    help: { type: 'boolean' },
    seed: { type: 'string' },
    runs: { type: 'string' },
    path: { type: 'string' },
    shell: { type: 'boolean', default: false },
  },
});
if (values.help) console.log(HELP);
else process.exitCode = await main(values);

async function main({ seed = '1', runs = values.seed === undefined ? '10000' : '1', path, shell }) {
  const lives = { seed: Number(seed), runs: path === undefined ? Number(runs) : 1, path, shell };
  if (Number.isNaN(lives.seed + lives.runs)) throw new Error(`a number is expected; ${HELP}`);
  const { simulate, describeFailure } = await withSimulation((file) => import(file));
  const startedAt = performance.now();
  const { lives: played, events, eventful, failure } = simulate(lives);
  if (failure !== undefined) console.log(`${describeFailure(failure)}\n`);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  console.log(
    `${played} lives from seed ${seed} on, ${events} events, ${eventful} of them no routine, in ${seconds} s: ${failure ? 'broken' : 'every invariant holds'}`,
  );
  return failure === undefined ? 0 : 1;
}
