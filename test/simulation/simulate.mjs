// Plays lives of a cluster in a simulated world: npm run simulate -- --help
import { parseArgs } from 'node:util';
import { withSimulation } from './bundle.mjs';

const HELP = `npm run simulate -- [options]

  --seed N    the life to play, or the first of several; default 1
  --runs N    how many lives, one for each seed from N on; default 1 with --seed, else 10000
  --shell     with the real supervisor around the core
  --path P    the shortest form of a failure of that seed, as a run has printed it

Ends with 0 where every invariant holds, else with 1.`;

class UsageError extends Error {}

try {
  process.exitCode = await main(readSettings(process.argv.slice(2)));
} catch (error) {
  console.error(error instanceof UsageError ? `error: ${error.message}; see --help` : error);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

async function main(settings) {
  if (settings === undefined) {
    console.log(HELP);
    return 0;
  }
  const { simulate, describeFailure } = await withSimulation((file) => import(file));
  const startedAt = performance.now();
  const { lives, events, eventful, failure } = simulate(settings);
  if (failure !== undefined) console.log(`${describeFailure(failure)}\n`);
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1);
  console.log(
    `${lives} lives from seed ${settings.seed} on, ${events} events, ${eventful} of them no routine, in ${seconds} s: ${failure ? 'broken' : 'every invariant holds'}`,
  );
  return failure === undefined ? 0 : 1;
}

/** @returns `undefined` if help is requested. @throws UsageError */
function readSettings(args) {
  const { help, seed, runs, path, shell = false } = parsed(args);
  if (help) return undefined;
  if (path !== undefined && !/^\d+(:\d+)*$/.test(path)) {
    throw new UsageError(`--path takes numbers with colons between them, not '${path}'`);
  }
  if (path !== undefined && seed === undefined) throw new UsageError('--path needs its --seed');
  const alone = seed !== undefined;
  return {
    seed: numberOf('--seed', seed ?? '1', 0),
    runs: path === undefined ? numberOf('--runs', runs ?? (alone ? '1' : '10000'), 1) : 1,
    path,
    shell,
  };
}

function parsed(args) {
  try {
    return parseArgs({
      args,
      options: {
        help: { type: 'boolean' },
        seed: { type: 'string' },
        runs: { type: 'string' },
        path: { type: 'string' },
        shell: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error.message);
  }
}

function numberOf(option, value, least) {
  const number = Number(value);
  if (/^\d+$/.test(value) && Number.isSafeInteger(number) && number >= least) return number;
  throw new UsageError(`${option} takes a whole number from ${least} on, not '${value}'`);
}
