import net from 'node:net';
import { Disturbances } from '../machine-use.mjs';
import { hasProgram } from '../systems/requirements.mjs';
import { SYSTEMS } from '../systems/index.mjs';

/** Each started system gets the next PORTS_EACH ports from here: enough for all of its workers. */
const FIRST_PORT = 21_500;
const PORTS_EACH = 20;
const LAST_PORT = 21_980;

const ADAPTER_NAMES = { express: 'Express', fastify: 'Fastify' };

/**
 * Runs one comparison on each of its adapters. Resolves with its rows and how they were measured.
 *
 * @throws BusyMachineError if other processes use the machine too much.
 */
export async function runComparison(comparison, settings) {
  const chosen = { ...comparison, workers: settings.cores, ...settings };
  const { rounds, seconds, starts, windows, events, workers } = chosen;
  const adapters = settings.adapters ?? comparison.adapters;
  const nextPort = ports();
  const disturbances = new Disturbances({ forced: settings.force });
  const rows = [];
  for (const adapter of adapters) {
    settings.progress(`\n== ${comparison.title}, ${ADAPTER_NAMES[adapter]}`);
    const run = {
      ...chosen,
      adapter,
      group: ADAPTER_NAMES[adapter],
      disturbances,
      nextPort,
      lacks: lacking(comparison),
      pick: (names) => pick(names, settings.systems),
      contestants: (names) => pick(names, settings.systems).map((system) => ({ system })),
    };
    rows.push(...(await comparison.rows(run)));
  }
  const { title, about, said, metric, parameters, baseline } = comparison;
  const { discarded } = disturbances;
  return {
    title,
    about,
    parameters: {
      ...parameters,
      workers,
      ...(seconds && { seconds }),
      ...(events && { events }),
      ...(windows ? { starts, windows } : { rounds }),
      ...(discarded > 0 && { [settings.force ? 'disturbed' : 'discarded']: discarded }),
    },
    ...(baseline && { baseline }),
    ...(settings.force && { forced: true }),
    metric,
    rows,
    ...(said && { said }),
  };
}

/** Why nothing of it can be measured here; undefined where it can. */
function lacking({ programs = [] }) {
  const missing = programs.filter((program) => !hasProgram(program));
  // Debian's packages are called as the programs are.
  return missing.length === 0
    ? undefined
    : `${missing.join(', ')} is missing: apt-get install ${missing.join(' ')}`;
}

/** The systems of a comparison, in the order of the tables; if `asked` is given, only those. */
function pick(names, asked) {
  return SYSTEMS.filter(
    ({ name }) => names.includes(name) && (asked === undefined || asked.includes(name)),
  );
}

/** Each system gets new ports: clients of the system before may still connect to its old ports. */
function ports() {
  let next = FIRST_PORT;
  return async () => {
    for (let tried = 0; tried < (LAST_PORT - FIRST_PORT) / PORTS_EACH; tried += 1) {
      const port = next;
      next = port + PORTS_EACH < LAST_PORT ? port + PORTS_EACH : FIRST_PORT;
      if (await areFree(port)) return port;
    }
    throw new Error(`the ports from ${FIRST_PORT} to ${LAST_PORT} are in use`);
  };
}

async function areFree(first) {
  for (let port = first; port < first + PORTS_EACH; port += 1) {
    const server = net.createServer();
    const free = await new Promise((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (!free) return false;
  }
  return true;
}
