import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { request } from '../support/http-client.js';
import { SteadyLoad } from '../support/steady-load.js';

afterEach(stopAll);

const OPTIONS = { heartbeat: { intervalMs: 200, timeoutMs: 1_000 } };

/** A small heap is full within a second. */
const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=64' };

/** A client that repeats a request five times a second, whatever becomes of it. */
async function repeat(base: string, path: string, times: number): Promise<(number | string)[]> {
  const answers: Promise<number | string>[] = [];
  for (let i = 0; i < times; i += 1) {
    answers.push(
      request(base, path, { timeoutMs: 5_000 }).then(({ outcome, status }) => status ?? outcome),
    );
    await delay(200);
  }
  return Promise.all(answers);
}

describe.each(['express', 'fastify'])('a request that ends its worker, on %s', (adapter) => {
  // A heap that is full leaves no time to say a word: both workers may end before anything is known.
  it.each([
    ['reject', 3],
    ['timer', 3],
    ['loop', 3],
    ['heap', 4],
  ])(
    'is kept from the app after a few deaths, and nothing else is: %s (P1)',
    async (kind, deaths) => {
      const workers = 2;
      const cluster = await ClusterProcess.start({
        options: { ...OPTIONS, workers },
        env: { ...behaviour('fatal'), ...SMALL_HEAP, TEST_ADAPTER: adapter },
      });
      const others = new SteadyLoad(cluster.url, ['/hello', `/fatal/${kind}/good`], 100);

      const answers = await repeat(cluster.url, `/fatal/${kind}/bad`, 100);

      const died = new Set(
        [...cluster.all('worker-failing'), ...cluster.all('worker-died')].map(({ pid }) => pid),
      );
      expect(died.size).toBeLessThanOrEqual(deaths);
      expect(answers.at(-1)).toBe(503);
      expect(cluster.all('quarantined')).toMatchObject([
        {
          level: 'error',
          method: 'GET',
          route: `/fatal/${kind}/:id`,
          path: `/fatal/${kind}/bad`,
          wholeRoute: false,
        },
      ]);
      expect((await request(cluster.url, `/fatal/${kind}/good`)).outcome).toBe('ok');
      await others.stop();
      expect(others.lost.length).toBeLessThanOrEqual(0.01 * others.answeredAt.length);
      expect(cluster.all('failed')).toEqual([]);
    },
  );
});
