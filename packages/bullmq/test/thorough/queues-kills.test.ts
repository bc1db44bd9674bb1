import { Redis } from 'ioredis';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { stopAll } from '../../../../test/support/cluster-process.js';
import { QueueApp } from '../support/queue-app.js';
import { RedisProcess } from '../../../../test/support/redis-process.js';
import { describeWith } from '../../../../test/support/system-packages.js';

/** QUEUE_CALLS=10000 is the whole of it, several minutes. */
const CALLS = Number(process.env['QUEUE_CALLS'] ?? 90);
const AT_A_TIME = 10;
const KILL_EVERY_MS = 3_000;
const QUEUES = { callTimeoutMs: 60_000 };

/** @returns whether it was still there. */
function kill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    return false;
  }
}

describeWith(['redis-server'], 'queued calls over three clusters', () => {
  it(
    'are each answered once, while consumers are killed and Redis is restarted',
    async () => {
      const directory = await mkdtemp(join(tmpdir(), 'queues-'));
      const redis = await RedisProcess.start(directory);
      const effects = await RedisProcess.start();
      const noted = new Redis(effects.port, '127.0.0.1');
      const consumer = { queues: QUEUES, options: { workers: 2 }, env: { CLUSTER_THREADS: '2' } };
      try {
        const [web, ...consumers] = await Promise.all([
          QueueApp.start({ redis, effects }, { queues: { ...QUEUES, consume: false } }),
          QueueApp.start({ redis, effects }, consumer),
          QueueApp.start({ redis, effects }, consumer),
        ]);
        const outcomes = new Map<string, unknown>();
        const refusals: number[] = [];
        let next = 0;
        let ended = false;
        const client = async (): Promise<void> => {
          for (let i = next++; i < CALLS; i = next++) {
            const id = `call-${i}`;
            for (let answer; !outcomes.has(id);) {
              answer = await web.call('noted', [id, 300]);
              if (answer.status === 201) outcomes.set(id, answer.body);
              // As its Retry-After says; anything else is an answer that nobody wants.
              else if (answer.status !== 503) outcomes.set(id, answer);
              else {
                refusals.push(answer.status);
                await delay(100);
              }
            }
          }
        };
        let kills = 0;
        const killing = (async () => {
          while (!ended) {
            await delay(KILL_EVERY_MS);
            // On a machine that starts workers slower than they are killed no call would end.
            const all = consumers.every(({ cluster }) => cluster.workerPids.length === 2);
            if (ended || !all) continue;
            // By turns, whatever else goes on.
            const { cluster } = consumers[kills % 2]!;
            if (kill(cluster.workerPids[0]!)) kills += 1;
          }
        })();
        const restarting = (async () => {
          while (outcomes.size < CALLS / 2) await delay(20);
          await redis.stop();
          await delay(500);
          await redis.run();
        })();
        const startedAt = performance.now();
        await Promise.all(Array.from({ length: AT_A_TIME }, client));
        const seconds = (performance.now() - startedAt) / 1_000;
        ended = true;
        await Promise.all([killing, restarting]);

        const wrong = [...outcomes].filter(([id, body]) => body !== id);
        const runs = await Promise.all([...outcomes.keys()].map((id) => noted.llen(`runs:${id}`)));
        const count = (holds: (n: number) => boolean) => runs.filter(holds).length;
        console.log(
          `${CALLS} calls in ${seconds.toFixed(1)} s, ${kills} kills, ${refusals.length} refusals (503) that were made again, ${wrong.length} wrong, ${count((n) => n > 1)} run more than once, ${count((n) => n === 0)} never run`,
        );
        if (wrong.length > 0) console.log(web.cluster.output.slice(-8_000));
        expect(wrong).toEqual([]);
        expect(outcomes.size).toBe(CALLS);
        expect(count((n) => n === 0)).toBe(0);
        expect(kills).toBeGreaterThan(0);
      } finally {
        await stopAll();
        noted.disconnect();
        await redis.stop();
        await effects.stop();
        await rm(directory, { recursive: true });
      }
    },
    // A call may be as slow as its job is often killed.
    120_000 + CALLS * 60,
  );
});
