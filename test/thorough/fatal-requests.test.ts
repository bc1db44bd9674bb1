import { rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour, runtimeBehaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { getJson, request } from '../support/http-client.js';
import { SteadyLoad } from '../support/steady-load.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const OPTIONS = { heartbeat: { intervalMs: 200, timeoutMs: 1_000 } };

/** Requests of others that were in a worker when it died: 1 % of those in 20 s. */
const MOST_LOST = 20;

/** A small heap is full within a second. */
const SMALL_HEAP = { NODE_OPTIONS: '--max-old-space-size=64' };

/** Most requests before the quarantine, and how many come after it. */
const BEFORE = 100;
const AFTER = 10;

/** A client that repeats a request five times a second, also for a while after it is quarantined. */
async function repeat(cluster: ClusterProcess, path: string): Promise<(number | string)[]> {
  const answers: Promise<number | string>[] = [];
  const quarantined = () => cluster.all('quarantined').length > 0;
  for (let left = BEFORE; left > 0; left = quarantined() ? Math.min(left, AFTER) - 1 : left - 1) {
    answers.push(
      request(cluster.url, path, { timeoutMs: 5_000 }).then(
        ({ outcome, status }) => status ?? outcome,
      ),
    );
    await delay(200);
  }
  return Promise.all(answers);
}

describe('a request that ends its worker', () => {
  // A heap that is full leaves no time to say a word: both workers may end before anything is known.
  it.each([
    ['express', 'reject', 3],
    ['fastify', 'timer', 3],
    ['fastify', 'loop', 3],
    ['express', 'heap', 4],
  ])(
    'is kept from the app after a few deaths, and nothing else is, on %s: %s',
    async (adapter, kind, deaths) => {
      const workers = 2;
      const cluster = await ClusterProcess.start({
        options: { ...OPTIONS, workers },
        env: { ...behaviour('fatal'), ...SMALL_HEAP, TEST_ADAPTER: adapter },
      });
      const others = new SteadyLoad(cluster.url, ['/hello', `/fatal/${kind}/good`], 100);

      const answers = await repeat(cluster, `/fatal/${kind}/bad`);

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
      expect(others.lost.length).toBeLessThanOrEqual(MOST_LOST);
      expect(cluster.all('failed')).toEqual([]);
    },
  );
});

/** Sends a request, and leaves at once. */
async function sendAndLeave(base: string, path: string): Promise<void> {
  const socket = net.connect(Number(new URL(base).port), '127.0.0.1').on('error', () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`, () => socket.destroy());
  await new Promise((resolve) => socket.once('close', resolve));
}

describe('requests that end their workers, of clients that have gone', () => {
  it('are not served from the accept queue once a worker has ended', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('fatal') });
    await request(cluster.url, '/fatal/reject/bad');
    await cluster.until('another worker', () => cluster.all('worker-ready').length === 3);
    await cluster.event('worker-died');
    const pids = cluster.workerPids;

    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    // Different ones: none of them is under quarantine.
    const paths = Array.from({ length: 200 }, (_, n) => `/fatal/reject/bad?n=${n}`);
    await Promise.all(paths.map((path) => sendAndLeave(cluster.url, path)));
    for (const pid of pids) process.kill(pid, 'SIGCONT');

    const answered = new Set<number>();
    await eventually('an answer of each worker', async () => {
      answered.add((await getJson(cluster.url, '/whoami')).body.pid);
      return answered.size === 2;
    });
    expect(answered).toEqual(new Set(pids));
    expect(cluster.all('worker-failing')).toHaveLength(1);
  });
});

describe('a request under quarantine', () => {
  it('is tried after a minute, and answered again once that does no harm', async () => {
    const broken = join(temporaryDirectory(), 'broken');
    writeFileSync(broken, '');
    const cluster = await ClusterProcess.start({
      options: { workers: 2, heartbeat: false },
      env: { ...behaviour('fatal'), ...runtimeBehaviour('minute-later'), TEST_BROKEN: broken },
    });
    // The first end is over a request that was answered: nothing is known of it.
    for (let deaths = 1; deaths <= 3; deaths += 1) {
      await request(cluster.url, '/fatal/timer/bad');
      await cluster.until('a death', () => cluster.all('worker-died').length >= deaths);
    }
    await cluster.event('quarantined');
    await cluster.until('two workers', () => cluster.workerPids.length === 2);
    rmSync(broken);

    const client = new SteadyLoad(cluster.url, ['/fatal/timer/bad'], 2);
    await cluster.event('quarantine-ended');
    await client.stop();

    expect((await request(cluster.url, '/fatal/timer/bad')).outcome).toBe('ok');
  });
});
