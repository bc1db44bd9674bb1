import http from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { answering } from '../load/ask.mjs';
import { ProcessGroup } from '../process-group.mjs';
import { median, percentile } from '../statistics.mjs';

const app = (name) => fileURLToPath(new URL(`../apps/${name}.mjs`, import.meta.url));
const PORT = 21_440;
const [WEB, CONSUMER, PLAIN, REDIS] = [PORT, PORT + 1, PORT + 2, PORT + 3];
const ROUTES = {
  light: `http://127.0.0.1:${WEB}/light`,
  local: `http://127.0.0.1:${WEB}/local`,
  queued: `http://127.0.0.1:${WEB}/queued`,
  plainLight: `http://127.0.0.1:${PLAIN}/light`,
  plainQueued: `http://127.0.0.1:${PLAIN}/queued`,
};
/** A measurement is so many calls, one after the other. */
const CALLS = 150;
const IN_FLIGHT = 16;

/**
 * The cost of a call that another cluster runs: the time and the CPU of all processes, with Redis,
 * that it takes more than a call in a local thread, and more than a light route. The same rounds
 * measure plain BullMQ with a sandboxed processor, compared with a light route of its own app. Also
 * measures the light route while the consumer is overloaded.
 */
export async function queuedCall({ node, rounds, seconds, progress }) {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'));
  const servers = new ProcessGroup();
  try {
    const configuration = join(directory, 'redis.conf');
    writeFileSync(configuration, `port ${REDIS}\nbind 127.0.0.1\nsave ""\nappendonly no\n`);
    servers.spawn('redis-server', [configuration]);
    const env = { REDIS: String(REDIS), CLUSTER_LOG_FORMAT: 'json' };
    servers.spawn(node, [app('queues')], {
      env: { ...env, PORT: String(WEB), CLUSTER_CONSUME: 'false' },
    });
    servers.spawn(node, [app('queues')], { env: { ...env, PORT: String(CONSUMER) } });
    servers.spawn(node, [app('plain-bullmq')], {
      env: { ...env, ROLE: 'web', PORT: String(PLAIN) },
    });
    servers.spawn(node, [app('plain-bullmq')], { env: { ...env, ROLE: 'consumer' } });
    for (const url of Object.values(ROUTES)) await answering(url, 20, 60_000);

    const runs = Object.fromEntries(Object.keys(ROUTES).map((route) => [route, []]));
    // Rounds below 1 are not counted: V8 compiles the code.
    for (let round = -3; round <= rounds; round += 1) {
      for (const [route, url] of Object.entries(ROUTES)) {
        const run = await measure(servers, url);
        if (round > 0) runs[route].push(run);
      }
      progress(
        `round ${round}/${rounds}: ${Object.entries(runs)
          .map(([route, each]) => [route, each.at(-1)])
          .map(
            ([route, run]) => `${route} ${run?.ms.toFixed(2)} ms ${run?.cpuMs.toFixed(2)} ms CPU`,
          )
          .join(', ')}`,
      );
    }
    const above = (route, base, key) =>
      median(runs[route].map((run, i) => run[key] - runs[base][i][key]));
    const least = (route, base, key) =>
      Math.min(...runs[route].map((run) => run[key])) -
      Math.min(...runs[base].map((run) => run[key]));
    const row = (call, route, base) => ({
      call,
      p50Ms: above(route, base, 'ms'),
      leastP50Ms: least(route, base, 'ms'),
      cpuMs: above(route, base, 'cpuMs'),
      leastCpuMs: least(route, base, 'cpuMs'),
    });
    return [
      row('queued, over a local one', 'queued', 'local'),
      row('queued, over a light route', 'queued', 'light'),
      row('plain BullMQ, over a light route', 'plainQueued', 'plainLight'),
      await whileFull(seconds),
    ];
  } finally {
    await servers.stop();
    rmSync(directory, { recursive: true });
  }
}

async function measure(servers, url) {
  const before = servers.cpuSeconds();
  const times = [];
  for (let i = 0; i < CALLS; i += 1) times.push(await timeOf(url));
  return { ms: median(times), cpuMs: ((servers.cpuSeconds() - before) / CALLS) * 1e3 };
}

/** Times a light route every few ms while more calls are in flight than the consumer can run. */
async function whileFull(seconds) {
  let full = true;
  const clients = Array.from({ length: IN_FLIGHT }, async () => {
    while (full) await timeOf(`http://127.0.0.1:${WEB}/burn`);
  });
  await delay(1_000);
  const times = [];
  for (const until = performance.now() + seconds * 1_000; performance.now() < until;) {
    times.push(await timeOf(ROUTES.light));
    await delay(5);
  }
  full = false;
  await Promise.all(clients);
  return { call: 'light, consumer full', p50Ms: median(times), p99Ms: percentile(times, 0.99) };
}

const agent = new http.Agent({ keepAlive: true });

function timeOf(url) {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    http
      .get(url, { agent }, (response) => {
        response.resume().on('end', () => {
          if (response.statusCode === 200) resolve(performance.now() - startedAt);
          else reject(new Error(`${url} answered ${response.statusCode}`));
        });
      })
      .on('error', reject);
  });
}
