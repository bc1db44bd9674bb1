import { accessSync, constants } from 'node:fs';
import { parseArgs } from 'node:util';
import { UsageError } from '../bench/usage-error.mjs';
import { CLIENTS } from './clients.mjs';
import { FAULTS } from './faults/index.mjs';
import { whatIsMissing } from './requirements.mjs';
import { schedule } from './schedule.mjs';

/** With a longer run faults come less close together. */
const LONGEST_PAUSE_MS = { short: 500, long: 3_000 };
const LONG_SECONDS = 300;

const FAULT_NAMES = FAULTS.map(({ name }) => name);
const CLIENT_NAMES = Object.keys(CLIENTS);

const HELP = `npm run chaos -- [options]

  --minutes N      how long faults are made; or --seconds N; default 60 seconds
  --seed N         decides the faults and their parameters; default: another each time
  --workers N      default 3
  --adapter NAME   express (default) or fastify
  --node PATH      Node under test; default: the one that runs this
  --faults A,B     only these, of: ${FAULT_NAMES.join(', ')}
  --without A,B    not these faults or clients; clients are:
                   ${CLIENT_NAMES.join(', ')}
  --json FILE      write the results there too

Ends with 0 where every check holds, else with 1.`;

/**
 * Parses and checks the command line.
 *
 * @throws UsageError
 */
export function readSettings(args) {
  const values = parsed(args);
  if (values.help) return { help: HELP };
  const chosen = list('--faults', values.faults ?? FAULT_NAMES.join(','), FAULT_NAMES);
  const without = list('--without', values.without ?? '', [...FAULT_NAMES, ...CLIENT_NAMES]);
  const faults = FAULTS.filter(({ name }) => chosen.includes(name) && !without.includes(name));
  if (faults.length === 0) throw new UsageError('no fault is left');
  const missing = faults.map(whatIsMissing).find((each) => each !== undefined);
  if (missing) throw new UsageError(missing);
  const [adapter] = list('--adapter', values.adapter, ['express', 'fastify']);
  const node = String(values.node ?? process.execPath);
  try {
    accessSync(node, constants.X_OK);
  } catch {
    throw new UsageError(`--node ${node}: expected the path of a Node`);
  }
  const seconds = values.minutes
    ? count('--minutes', values.minutes) * 60
    : count('--seconds', values.seconds);
  const seed = values.seed ? count('--seed', values.seed) : Math.floor(Math.random() * 1e6) + 1;
  const longestPauseMs = LONGEST_PAUSE_MS[seconds < LONG_SECONDS ? 'short' : 'long'];
  return {
    seconds,
    seed,
    schedule: schedule(seed, faults, longestPauseMs),
    workers: count('--workers', values.workers),
    adapter,
    node,
    faults,
    clients: CLIENT_NAMES.filter((name) => !without.includes(name)),
    json: values.json,
  };
}

function parsed(args) {
  const text = { type: 'string' };
  try {
    return parseArgs({
      args,
      options: {
        help: { type: 'boolean', short: 'h' },
        minutes: text,
        seconds: { ...text, default: '60' },
        seed: text,
        workers: { ...text, default: '3' },
        adapter: { ...text, default: 'express' },
        node: text,
        faults: text,
        without: text,
        json: text,
      },
    }).values;
  } catch (error) {
    throw new UsageError(`${error.message} (--help shows what there is)`);
  }
}

function list(option, text, known) {
  const names = text.split(',').filter((name) => name !== '');
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return names;
  throw new UsageError(
    `${option} ${unknown}: there is none of this name; known are ${known.join(', ')}`,
  );
}

function count(option, text) {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new UsageError(`${option} ${text}: expected a whole number from 1 to 9999999`);
}
