import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { Clients } from '../load/clients.mjs';
import { answering } from '../load/ask.mjs';
import { median } from '../statistics.mjs';

const APP = fileURLToPath(new URL('../apps/reload.mjs', import.meta.url));
const BASE_PORT = 21_310;

/** From this reload on, the primary's resources must not grow. */
const SETTLED_AFTER = 5;

/**
 * The effect of deployments on clients: reload after reload under keep-alive GETs, GETs on new
 * connections and 16 KB POSTs, which are never retried. A request without a success response counts
 * as lost.
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
  const end = () => primary.kill('SIGTERM');
  process.once('exit', end); // also when this run is interrupted
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
    end();
    await exited;
    process.off('exit', end);
  }
}
