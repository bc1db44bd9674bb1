import http from 'node:http';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readWorkers, sum } from '../cluster-metrics.mjs';
import { answering } from '../processes.mjs';

const APP = fileURLToPath(new URL('../apps/hello.mjs', import.meta.url));
const PORT = 21_370;
const CONNECTIONS = 32;

/** How often there is a worker more, or one less: it keeps rebalancing at work. */
const DISTURB_EVERY_MS = 3_000;

/**
 * A strict client on kept connections, under rebalancing that never rests:
 * whatever is not answered 200 is an error, and nothing is asked twice.
 */
export async function strict({ node, adapters, requests, progress }) {
  const results = [];
  for (const adapter of adapters)
    results.push(await measure({ node, adapter, requests, progress }));
  return results;
}

async function measure({ node, adapter, requests, progress }) {
  const base = `http://127.0.0.1:${PORT}`;
  const primary = spawn(node, [APP], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ADAPTER: adapter,
      PORT: String(PORT),
      CLUSTER_LOG_FORMAT: 'json',
    },
  });
  const ended = once(primary, 'exit');
  let more = true;
  const disturb = setInterval(() => {
    primary.kill(more ? 'SIGTTIN' : 'SIGTTOU');
    more = !more;
  }, DISTURB_EVERY_MS);
  try {
    await answering(`${base}/hello`);
    const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    const errors = new Map();
    let left = requests;
    const clients = Array.from({ length: CONNECTIONS }, async () => {
      while (left > 0) {
        left -= 1;
        if (left % 100_000 === 0) progress(`${adapter}: ${left} requests left`);
        const outcome = await ask(`${base}/hello`, agent);
        if (outcome !== undefined) errors.set(outcome, (errors.get(outcome) ?? 0) + 1);
      }
    });
    await Promise.all(clients);
    clearInterval(disturb);
    await delay(1_500); // a worker that is leaving says what it has counted
    const { rebalanced } = await readWorkers(base);
    agent.destroy();
    return {
      adapter,
      requests,
      errors: sum(errors.values()),
      kinds: [...errors].map(([kind, count]) => `${kind}: ${count}`).join(', '),
      askedToReconnect: sum(rebalanced.values()),
    };
  } finally {
    clearInterval(disturb);
    primary.kill('SIGTERM');
    await ended;
  }
}

/** Resolves with what went wrong, or with nothing. */
function ask(url, agent) {
  return new Promise((resolve) => {
    http
      .get(url, { agent }, (response) => {
        response.resume();
        response.on('end', () =>
          resolve(response.statusCode === 200 ? undefined : `status ${response.statusCode}`),
        );
        response.on('error', (error) => resolve(error.code ?? error.message));
      })
      .on('error', (error) => resolve(error.code ?? error.message));
  });
}
