import { Redis } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { QueueApp } from '../support/queue-app.js';
import { RedisProcess } from '../support/redis-process.js';
import { describeWith } from '../support/system-packages.js';

const places = {} as { redis: RedisProcess; effects: RedisProcess };
let effects: Redis;
let redis: Redis;

const begun = (id: string, times = 1) =>
  eventually(
    `run ${times} of ${id}`,
    () => effects.llen(`runs:${id}`),
    (count) => count >= times,
  );

beforeAll(async () => {
  places.redis = await RedisProcess.start();
  places.effects = await RedisProcess.start();
  effects = new Redis(places.effects.port, '127.0.0.1');
  redis = new Redis(places.redis.port, '127.0.0.1');
});
afterEach(stopAll);
afterAll(async () => {
  effects.disconnect();
  redis.disconnect();
  await places.redis.stop();
  await places.effects.stop();
});

describeWith(['redis-server'], 'a job whose consumer is killed', () => {
  /** When BullMQ last looked for such jobs, by the clock of the consumer that did. */
  const lookedAt = (prefix: string) => redis.get(`${prefix}:reports:stalled-check`);

  it('is begun again within lock and stalled time, whatever moment it is killed at', async () => {
    const queues = { lockMs: 1_000, stalledIntervalMs: 2_000, prefix: 'moment' };
    const [, victim] = await Promise.all([
      QueueApp.start(places, { queues, env: { CLUSTER_CONSUME: 'false' } }).then((web) =>
        web.post('enqueue/noted', { args: ['early', 1] }),
      ),
      QueueApp.start(places, { queues }),
    ]);
    await begun('early');
    await QueueApp.start(places, { queues });
    for (const id of ['first', 'second']) {
      // The worst moment: the job begins right after a look, which has not marked it.
      const before = await lookedAt('moment');
      await eventually(
        'a look',
        () => lookedAt('moment'),
        (at) => at !== null && at !== before,
      );
      await victim.post('enqueue/noted', { args: [id, 1_000] });
      await begun(id);
      const pid = Number(await effects.lindex(`runs:${id}`, 0));
      const killedAt = performance.now();
      process.kill(pid, 'SIGKILL');
      await begun(id, 2);
      const took = performance.now() - killedAt;
      expect(took).toBeGreaterThan(500); // its lock had to end
      expect(took).toBeLessThan(queues.lockMs + queues.stalledIntervalMs + 1_000);
      await eventually(
        'both clusters whole',
        () => victim.get('health'),
        ({ status }) => status === 200,
      );
    }
  });

  it('is looked for in each stalled time, also by a consumer that is alone', async () => {
    const stalledIntervalMs = 400;
    const app = await QueueApp.start(places, {
      queues: { lockMs: 1_000, stalledIntervalMs, prefix: 'alone' },
    });
    expect((await app.call('add', [1, 2])).status).toBe(201);
    const looks = new Set<number>();
    const until = performance.now() + 15 * stalledIntervalMs;
    while (performance.now() < until) {
      const at = await lookedAt('alone');
      if (at !== null) looks.add(Number(at));
      await delay(5);
    }
    const times = [...looks];
    const gaps = times.slice(1).map((at, i) => at - times[i]!);
    expect(gaps.length).toBeGreaterThan(10);
    // One late look is the machine's; those that fall out are one of three.
    const late = gaps.filter((gap) => gap > stalledIntervalMs + 150);
    expect(late.length).toBeLessThan(2);
  });
});

describeWith(['redis-server'], 'a Redis that is full', () => {
  const fill = () => redis.config('SET', 'maxmemory', '1');
  const free = () => redis.config('SET', 'maxmemory', '0');
  const REFUSED = 'Redis of the queues does not take a reply: OOM';

  it('is given a reply again until it takes it, or the call has its 504', async () => {
    // Locks are not renewed while Redis is full, so `lockMs` is longer than that.
    const queues = { prefix: 'full', lockMs: 30_000, callTimeoutMs: 6_000 };
    const [web, consumer] = await Promise.all([
      QueueApp.start(places, { queues: { ...queues, consume: false } }),
      QueueApp.start(places, { queues, env: { CLUSTER_THREADS: '2' } }),
    ]);
    const refusal = () =>
      consumer.cluster.until('its refusal', () => consumer.cluster.output.includes(REFUSED));
    try {
      const answer = web.call('noted', ['full', 500]);
      await begun('full');
      await fill();
      await refusal();
      const freedAt = performance.now();
      await free();
      expect(await answer).toEqual({ status: 201, body: 'full' });
      expect(performance.now() - freedAt).toBeLessThan(2_000);
      expect(await effects.llen('runs:full')).toBe(1);

      const askedAt = performance.now();
      const late = web.call('noted', ['too-full', 500]);
      await begun('too-full');
      await fill();
      expect((await late).status).toBe(504);
      expect(performance.now() - askedAt).toBeLessThan(6_000 + 2_000);
      // Said once a minute, however often it was tried.
      expect(consumer.cluster.output.split(REFUSED)).toHaveLength(2);
      // A new call is told at once.
      expect((await web.call('add', [1, 2])).status).toBe(503);
    } finally {
      await free();
    }
    expect((await web.call('add', [20, 22])).body).toMatchObject({ sum: 42 });
    expect(consumer.cluster.all('worker-died')).toEqual([]);
  });
});
