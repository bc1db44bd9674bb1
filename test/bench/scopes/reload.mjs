import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { answering } from '../processes.mjs';
import { median } from '../statistics.mjs';

const APP = fileURLToPath(new URL('../apps/reload.mjs', import.meta.url));
const BASE_PORT = 21_310;
const CLIENTS_OF_A_KIND = 6;
const BODY = JSON.stringify({ text: 'x'.repeat(16 * 1024) });

/** From this reload on what the primary holds must be flat. */
const SETTLED_AFTER = 5;

/**
 * What a deploy costs the clients: reload after reload under keep-alive GETs,
 * new connections and 16 KB POSTs, none of them ever retried. Every request
 * that is not answered well is lost.
 */
export async function reload({ node, adapters, workers, reloads, progress }) {
  const results = [];
  for (const adapter of adapters) {
    for (const count of workers) {
      results.push(await measure({ node, adapter, workers: count, reloads, progress }));
    }
  }
  return results;
}

async function measure({ node, adapter, workers, reloads, progress }) {
  const port = BASE_PORT + workers;
  const primary = spawn(node, ['--expose-gc', APP], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      ADAPTER: adapter,
      PORT: String(port),
      WORKERS: String(workers),
      CANARY_MS: '1000',
    },
  });
  const ask = async (question) => {
    primary.send(question);
    return (await once(primary, 'message'))[0];
  };
  try {
    await answering(`http://127.0.0.1:${port}/hello`);
    const clients = new Clients(port);
    const durations = [];
    const failed = [];
    let settled;
    for (let k = 1; k <= reloads; k += 1) {
      const startedAt = performance.now();
      const result = await ask('reload');
      durations.push(performance.now() - startedAt);
      if (result.outcome !== 'completed') failed.push(result.reason);
      if (k === Math.min(SETTLED_AFTER, reloads)) settled = await ask('held');
      progress(
        `${adapter}, ${workers} workers: reload ${k}/${reloads} ${result.outcome}, ` +
          `${clients.requests} requests, ${clients.lost} lost`,
      );
    }
    const end = await ask('held');
    await clients.stop();
    const growth = (key) => `${settled[key]} → ${end[key]}`;
    const inMegabytes = ({ [0]: from, [1]: to }) =>
      `${(from / 1e6).toFixed(1)} → ${(to / 1e6).toFixed(1)}`;
    return {
      adapter,
      workers,
      reloads,
      aborted: failed.length,
      requests: clients.requests,
      lost: clients.lost,
      lostBy: Object.entries(clients.losses)
        .map(([what, count]) => `${what} ${count}`)
        .join(', '),
      generations: clients.generations.size,
      medianReloadMs: Math.round(median(durations)),
      descriptors: growth('descriptors'),
      listeners: growth('listeners'),
      heapMegabytes: inMegabytes([settled.heapUsed, end.heapUsed]),
      rssMegabytes: inMegabytes([settled.rss, end.rss]),
    };
  } finally {
    const exited = once(primary, 'exit');
    primary.kill('SIGTERM');
    await exited;
  }
}

/** Eighteen clients without pause: a third on kept connections, a third on new ones, a third posts. */
class Clients {
  requests = 0;
  lost = 0;
  losses = {};
  generations = new Set();
  #stopped = false;
  #running;

  constructor(port) {
    const kinds = [
      () => ({ path: '/whoami', agent: keepAlive() }),
      () => ({ path: '/whoami', agent: false }),
      () => ({ path: '/echo', method: 'POST', agent: keepAlive(), body: BODY }),
    ];
    this.#running = kinds.flatMap((kind) =>
      Array.from({ length: CLIENTS_OF_A_KIND }, () => this.#run({ port, ...kind() })),
    );
  }

  async #run(options) {
    while (!this.#stopped) {
      const outcome = await send(options);
      this.requests += 1;
      if (outcome.error !== undefined) {
        this.lost += 1;
        this.losses[outcome.error] = (this.losses[outcome.error] ?? 0) + 1;
      } else if (options.path === '/whoami') {
        this.generations.add(JSON.parse(outcome.body).generation);
      }
    }
  }

  async stop() {
    this.#stopped = true;
    await Promise.all(this.#running);
  }
}

function keepAlive() {
  return new http.Agent({ keepAlive: true, maxSockets: 1 });
}

function send({ port, path, method = 'GET', agent, body }) {
  return new Promise((resolve) => {
    const headers = body ? { 'content-type': 'application/json' } : {};
    const request = http.request({ host: '127.0.0.1', port, path, method, agent, headers });
    request.setTimeout(10_000, () => request.destroy(new Error('timeout')));
    request.on('error', (error) => resolve({ error: `${method} ${error.code ?? error.message}` }));
    request.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('error', (error) => resolve({ error: `${method} ${error.code}` }));
      response.on('end', () => {
        const well = response.statusCode < 300 && (body === undefined || text === body);
        resolve(well ? { body: text } : { error: `${method} status ${response.statusCode}` });
      });
    });
    request.end(body);
  });
}
