import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { between, readWorkers, sum } from '../cluster-metrics.mjs';
import { answering } from '../processes.mjs';
import { loadUrl } from '../load/wrk.mjs';

const APP = fileURLToPath(new URL('../apps/hello.mjs', import.meta.url));
const PORT = 21_340;
const CONNECTIONS = 64;

/** When a new worker has to carry its share, and how long that is then measured. */
const GRACE_MS = 5_000;
const WINDOW_MS = 3_000;

/** Causes of new workers, each with the event of the log at which their grace period begins. */
const DISTURBANCES = {
  'scale-up from 2 to 4': {
    until: 'scaling',
    cause: async (primary) => {
      primary.kill('SIGTTIN');
      await delay(20);
      primary.kill('SIGTTIN');
    },
    fresh: (slot) => slot >= 2,
  },
  reload: { until: 'reload-ended', cause: (primary) => primary.kill('SIGHUP'), fresh: () => true },
  'kill -9': {
    until: 'worker-died',
    cause: async (primary, base) => {
      const health = await (
        await fetch(`${base}/health`, { headers: { connection: 'close' } })
      ).json();
      process.kill(health.details.cluster.workers[0].pid, 'SIGKILL');
    },
    fresh: (slot) => slot === 0,
  },
};

/**
 * How soon new workers serve their share of requests on keep-alive connections. Measures each
 * worker's requests relative to a fair share, in the 3 s that begin 5 s after the event of the log.
 */
export async function refill({ node, adapters, rounds, progress }) {
  const results = [];
  for (const adapter of adapters) {
    for (const [name, disturbance] of Object.entries(DISTURBANCES)) {
      const runs = [];
      for (let round = 0; round < rounds; round += 1) {
        const run = await measure({ node, adapter, disturbance });
        runs.push(run);
        progress(
          `${adapter} ${name} round ${round + 1}/${rounds}: shares ${run.shares.map((share) => share.toFixed(2)).join(' ')}, ${run.rebalanced} asked to reconnect`,
        );
      }
      results.push({
        adapter,
        disturbance: name,
        leastShareOfNew: Math.min(...runs.map((run) => run.least)),
        rounds: runs.map((run) => run.least.toFixed(2)).join(' '),
      });
    }
  }
  return results;
}

async function measure({ node, adapter, disturbance }) {
  const base = `http://127.0.0.1:${PORT}`;
  const primary = spawn(node, [APP], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ADAPTER: adapter,
      PORT: String(PORT),
      CLUSTER_LOG_FORMAT: 'json',
    },
  });
  const ended = once(primary, 'exit');
  try {
    await answering(`${base}/hello`);
    const load = loadUrl(`${base}/hello`, { connections: CONNECTIONS, seconds: 18 });
    await delay(4_000);
    const told = event(primary, disturbance.until);
    await disturbance.cause(primary, base);
    await told;
    const start = await readWorkers(base);
    await delay(GRACE_MS);
    const before = await readWorkers(base);
    await delay(WINDOW_MS);
    const after = await readWorkers(base);
    await load;
    const requests = between(before.requests, after.requests);
    const fair = sum(requests.values()) / requests.size;
    const fresh = [...requests].filter(([slot]) => disturbance.fresh(slot));
    return {
      shares: [...requests.values()].map((served) => served / fair),
      least: Math.min(...fresh.map(([, served]) => served / fair)),
      rebalanced: sum(between(start.rebalanced, after.rebalanced).values()),
    };
  } finally {
    primary.kill('SIGTERM');
    await ended;
  }
}

/** Resolves with the next event of that name in the log of a primary. */
function event(primary, name) {
  return new Promise((resolve) => {
    for (const stream of [primary.stdout, primary.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        if (line.includes(`"event":"${name}"`)) resolve();
      });
    }
  });
}
