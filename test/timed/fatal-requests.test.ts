import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { NODE_MAJOR } from '../support/adapters.js';
import { clusterReport } from '../support/health.js';
import { request } from '../support/http-client.js';
import { SteadyLoad } from '../support/steady-load.js';

afterEach(stopAll);

const OPTIONS = { workers: 2, hangTimeoutMs: 3_000 };

/** A small heap is full within a second. */
const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=64' };

/** How long a client repeats the fatal request. The promise is about 120 s. */
const SECONDS = Number(process.env['FATAL_SECONDS'] ?? 20);

/** The cluster has all its workers again this long after the last fatal request. */
const WHOLE_MS = 30_000;

const OTHERS_PER_SECOND = 10;

interface Named {
  readonly requests: readonly { readonly method: string; readonly path: string }[];
}

/** Repeats a fatal request once a second next to other clients, and reports what these have lost. */
async function repeat(adapter: string, kind: string) {
  const cluster = await ClusterProcess.start({
    options: OPTIONS,
    env: { ...behaviour('crashes#fatal'), ...SMALL_HEAP, TEST_ADAPTER: adapter },
  });
  const others = new SteadyLoad(cluster.url, [`/fatal/${kind}/good`], OTHERS_PER_SECOND);
  const fatal: Promise<unknown>[] = [];
  for (let second = 0; second < SECONDS; second += 1) {
    fatal.push(request(cluster.url, `/fatal/${kind}/bad`, { timeoutMs: 5_000 }));
    await delay(1_000);
  }
  await Promise.all(fatal);
  await others.stop();
  const lost = others.lost.length;
  const died = cluster.all('worker-died').length;
  console.log(
    `${kind}, ${SECONDS} s: ${died} workers died, others lost ${lost} of ${lost + others.answered} requests`,
  );
  const endedAt = performance.now();
  await eventually(
    `a whole cluster after ${kind}`,
    async () => (await clusterReport(cluster.url).catch(() => undefined))?.ready,
    (ready) => ready === OPTIONS.workers,
    WHOLE_MS,
  );
  const deaths = cluster.all('worker-died');
  console.log(`${kind}: whole after ${Math.round(performance.now() - endedAt)} ms`);
  expect(deaths.length).toBeGreaterThan(SECONDS / 10);
  expect(cluster.all('failed')).toEqual([]);
  expect((await request(cluster.url, `/fatal/${kind}/good`)).outcome).toBe('ok');
  const paths = deaths.flatMap((died) => (died as unknown as Named).requests);
  return paths.map(({ method, path }) => `${method} ${path}`);
}

it(
  'a fatal request each second ends no cluster, and the log names the request',
  async () => {
    const [reject, timer, loop] = await Promise.all([
      repeat('express', 'reject'),
      repeat('fastify', 'timer'),
      repeat('fastify', 'loop'),
      repeat('express', 'heap'),
    ]);
    expect(loop).toContain('GET /fatal/loop/bad');
    // Before Node 24 the errors have no context, and these requests are answered by then.
    if (NODE_MAJOR < 24) return;
    expect(reject).toContain('GET /fatal/reject/bad');
    expect(timer).toContain('GET /fatal/timer/bad');
  },
  SECONDS * 1_000 + 120_000,
);
