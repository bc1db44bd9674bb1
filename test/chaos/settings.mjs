import { count, known, parsed } from '../bench/command-line.mjs';
import { FAULTS } from './faults.mjs';
import { schedule } from './schedule.mjs';

/** With a longer run faults come less close together. */
const LONGEST_PAUSE_MS = { short: 500, long: 3_000 };

const FAULT_NAMES = FAULTS.map(({ name }) => name);
const ADAPTERS = ['express', 'fastify'];

const TEXT = { type: 'string' };
const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  minutes: TEXT,
  seconds: { ...TEXT, default: '60' },
  seed: TEXT,
  workers: { ...TEXT, default: '3' },
  adapter: { ...TEXT, default: 'express' },
  node: TEXT,
  faults: { ...TEXT, default: FAULT_NAMES.join(',') },
  json: TEXT,
};

const HELP = `npm run chaos -- [options]

  --minutes N      how long faults are made; or --seconds N; default 60 seconds
  --seed N         decides the faults and their parameters; default: another each time
  --workers N      default 3
  --adapter NAME   express (default) or fastify
  --node PATH      Node under test; default: the one that runs this
  --faults A,B     only these, of: ${FAULT_NAMES.join(', ')}
  --json FILE      write the results there too

Ends with 0 where every check holds, else with 1.`;

/**
 * Parses and checks the command line.
 *
 * @throws UsageError
 */
export function readSettings(args, help = HELP) {
  const values = parsed(args, OPTIONS);
  if (values.help) return { help };
  const chosen = known('--faults', values.faults.split(','), FAULT_NAMES);
  const faults = FAULTS.filter(({ name }) => chosen.includes(name));
  const [adapter] = known('--adapter', [values.adapter], ADAPTERS);
  const seconds = values.minutes
    ? count('--minutes', values.minutes) * 60
    : count('--seconds', values.seconds);
  const seed = values.seed ? count('--seed', values.seed) : Math.floor(Math.random() * 1e6) + 1;
  const longestPauseMs = LONGEST_PAUSE_MS[seconds < 300 ? 'short' : 'long'];
  return {
    seconds,
    seed,
    schedule: schedule(seed, faults, longestPauseMs),
    workers: count('--workers', values.workers),
    adapter,
    node: values.node ?? process.execPath,
    faults,
    json: values.json,
  };
}
