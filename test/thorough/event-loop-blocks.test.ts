import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import type { MetricsPage } from '../support/metrics-page.js';
import { scrapeAll } from '../support/scrape.js';

const BLOCK_MS = 120;
/** As long as the fixture waits before it blocks. Requests of this time are in flight then. */
const DURING_MS = 600;

const COUNT = 'nestjs_cluster_event_loop_blocks_total';
const SECONDS = 'nestjs_cluster_event_loop_block_seconds_total';

const blocksOf = (page: MetricsPage, path: string) => ({
  count: page.sum(COUNT, { route: `/blocks/${path}/:ms` }),
  seconds: page.sum(SECONDS, { route: `/blocks/${path}/:ms` }),
});

/** How often the threads of a process woke up in a second, each by its id, without the main thread. */
async function wakeUpsOf(pid: number): Promise<Map<string, number>> {
  const count = () =>
    new Map(
      readdirSync(`/proc/${pid}/task`)
        .filter((thread) => thread !== String(pid))
        .map((thread) => {
          const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8');
          return [thread, Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)![1])];
        }),
    );
  const before = count();
  await delay(1_000);
  return new Map(
    [...count()].map(([thread, after]) => [thread, after - (before.get(thread) ?? 0)]),
  );
}

describe.each(['express', 'fastify'] as const)('blocks of the event loop on %s', (adapter) => {
  let cluster: ClusterProcess;

  beforeAll(async () => {
    cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { ...behaviour('block-routes'), TEST_ADAPTER: adapter },
    });
  });
  afterAll(stopAll);

  /** Blocks once, while an older and a newer request wait, and reads what that has added. */
  async function blockBy(path: string) {
    const before = await scrapeAll(cluster.url);
    const older = request(cluster.url, `/blocks/waiting/${DURING_MS}`);
    await delay(100);
    const blocking = request(cluster.url, `/blocks/${path}/${BLOCK_MS}`);
    await delay(100);
    const newer = request(cluster.url, `/blocks/waiting/${DURING_MS}`);
    await Promise.all([older, blocking, newer]);
    const after = await scrapeAll(cluster.url);
    const [was, is] = [blocksOf(before, path), blocksOf(after, path)];
    return {
      count: is.count - was.count,
      seconds: is.seconds - was.seconds,
      others: blocksOf(after, 'waiting').count - blocksOf(before, 'waiting').count,
    };
  }

  it.each(['at-once', 'later', 'in-service', 'sleeping'])(
    'are counted with their time under the route that blocks, not the newest: %s',
    async (path) => {
      // A busy machine may hold up the watchdog for as long as the block lasts.
      const { seconds } = await eventually(
        'a block that counts under its route alone',
        () => blockBy(path),
        ({ count, others }) => count === 1 && others === 0,
      );
      expect(seconds).toBeGreaterThanOrEqual(BLOCK_MS / 1_000 - 0.001);
      expect(seconds).toBeLessThan(1);
    },
  );

  it('are not what a quick request does, nor the time that a request waits', async () => {
    const counted = async () => (await scrapeAll(cluster.url)).sum(COUNT);
    // Other processes may hold up a worker for as long as a block. They do so now and then.
    await eventually(
      'requests without a block',
      async () => {
        const before = await counted();
        for (let i = 0; i < 5; i += 1) await request(cluster.url, '/blocks/at-once/10');
        await request(cluster.url, '/blocks/waiting/200');
        return (await counted()) - before;
      },
      (blocks) => blocks === 0,
    );
  });

  it('are looked for by a watchdog that rests while the worker is idle', async () => {
    const [pid] = cluster.workerPids as [number];
    // It ticks 50 times a second, later 4 times. The other threads do nothing for most of the time.
    const busy = await eventually(
      'a thread that ticks while a request waits',
      async () => {
        const waiting = request(cluster.url, '/blocks/waiting/1500');
        const all = [...(await wakeUpsOf(pid))];
        await waiting;
        return all.filter(([, times]) => times > 30);
      },
      ({ length }) => length > 0,
    );
    await eventually(
      'a second in which all of them rest',
      () => wakeUpsOf(pid),
      (now) => busy.every(([thread]) => now.get(thread)! < 20),
    );
  });
});
