import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { QueueApp } from '../support/queue-app.js';
import { RedisProcess } from '../support/redis-process.js';
import { describeWith } from '../support/system-packages.js';

const places = {} as { redis: RedisProcess; effects: RedisProcess };
let effects: Redis;
let redis: Redis;

beforeAll(async () => {
  places.redis = await RedisProcess.start();
  places.effects = await RedisProcess.start();
  effects = new Redis(places.effects.port, '127.0.0.1');
  redis = new Redis(places.redis.port, '127.0.0.1', { maxRetriesPerRequest: null });
  for (const each of [effects, redis]) each.on('error', () => {});
});
afterEach(stopAll);
afterAll(async () => {
  effects.disconnect();
  redis.disconnect();
  await places.redis.stop();
  await places.effects.stop();
});

describeWith(['redis-server'], 'a look-up by an id that a client made up', () => {
  it('finds no job of another app, and leaves nothing in Redis', async () => {
    const others = new Queue('others', { connection: redis, prefix: 'looks' });
    await others.add('secret', { v: 1 }, { jobId: 'theirs' });
    const app = await QueueApp.start(places, { queues: { prefix: 'looks' } });
    await app.post('enqueue/noted', { args: ['mine', 1], id: 'mine' });
    await eventually(
      'its end',
      async () => (await app.get('job/reports/mine')).body,
      (body) => (body as { state: string }).state === 'completed',
    );
    // The keys of the app's own queue come and go, so they are left out.
    const strangers = async () =>
      (await redis.keys('looks:*')).filter((key) => !key.startsWith('looks:reports:')).sort();
    const before = await strangers();
    expect((await app.get('job/others/theirs')).body).toEqual({ state: 'forgotten' });
    for (let i = 0; i < 50; i += 1) {
      expect((await app.get(`job/made-up-${i}/x`)).body).toEqual({ state: 'forgotten' });
    }
    expect((await app.get('job/no%20queue/x')).body).toEqual({ state: 'forgotten' });
    expect(await strangers()).toEqual(before);
  });
});

describeWith(['redis-server'], 'a Redis that hangs', () => {
  // Half of it is left for a thread, which a busy machine may not give at once.
  const QUEUE_TIMEOUT_MS = 5_000;

  it('keeps a call that it has not confirmed for no longer than 5 s', async () => {
    const [rejects, runsHere] = await Promise.all([
      QueueApp.start(places, { queues: { prefix: 'hangs' } }),
      QueueApp.start(places, { queues: { prefix: 'hangs', onUnavailable: 'local' } }),
    ]);
    // Each has a thread that is warm.
    for (const app of [rejects, runsHere]) {
      await eventually(
        'an answer',
        () => app.call('add', [1, 2]),
        ({ status }) => status === 201,
      );
    }
    process.kill(places.redis.pid, 'SIGSTOP');
    try {
      const startedAt = performance.now();
      const timed = async (answer: Promise<{ status: number; body: unknown }>) => ({
        ...(await answer),
        ms: performance.now() - startedAt,
      });
      const [refused, enqueued, here] = await Promise.all([
        timed(rejects.call('noted', ['refused', 1])),
        timed(rejects.post('enqueue/noted', { args: ['never', 1] })),
        timed(runsHere.call('add', [20, 22])),
      ]);
      for (const [{ ms }, patienceMs] of [
        [refused, QUEUE_TIMEOUT_MS],
        [enqueued, QUEUE_TIMEOUT_MS],
        [here, QUEUE_TIMEOUT_MS / 2],
      ] as const) {
        expect(ms).toBeGreaterThan(patienceMs - 100);
        expect(ms).toBeLessThan(patienceMs + 1_500);
      }
      expect([refused.status, enqueued.status]).toEqual([503, 503]);
      expect(here).toMatchObject({ status: 201, body: { sum: 42, isMainThread: false } });
    } finally {
      process.kill(places.redis.pid, 'SIGCONT');
    }
    await eventually(
      'an answer by the queue',
      () => rejects.call('add', [1, 2]),
      ({ status }) => status === 201,
    );
  });
});

describeWith(['redis-server'], 'a new method beside an old consumer of its queue', () => {
  const CALLS = 100;

  it.each([
    ['the process that calls it consumes', {}],
    ['another process of its release consumes', { consume: false }],
  ])('is run at once where %s', async (_where, web) => {
    const prefix = `rollout-${Object.keys(web).length}`;
    const queues = { prefix };
    const next = { TEST_NEW_METHOD: 'yes' };
    const [, caller] = await Promise.all([
      QueueApp.start(places, { queues, env: { CLUSTER_THREADS: '2' } }),
      QueueApp.start(places, {
        queues: { ...queues, ...web },
        env: { ...next, CLUSTER_THREADS: '2' },
      }),
      ...('consume' in web
        ? [QueueApp.start(places, { queues, env: { ...next, CLUSTER_THREADS: '2' } })]
        : []),
    ]);
    // The threads of its release are warm.
    expect((await caller.call('added', [])).status).toBe(201);
    const latencies: number[] = [];
    const answers = await Promise.all(
      Array.from({ length: CALLS }, async () => {
        const startedAt = performance.now();
        const { status, body } = await caller.call('added', []);
        latencies.push(performance.now() - startedAt);
        return [status, body];
      }),
    );
    latencies.sort((a, b) => a - b);
    const p90 = latencies[Math.floor(CALLS * 0.9)]!;
    console.log(`p90 ${p90.toFixed(0)} ms, longest ${latencies.at(-1)!.toFixed(0)} ms`);
    expect(new Set(answers.map(String))).toEqual(new Set(['201,new']));
    expect(p90).toBeLessThan(5_000);
    // A method that both releases have is still run, and no job of the new method is left over.
    expect((await caller.call('add', [20, 22])).body).toMatchObject({ sum: 42 });
    for (const name of ['reports', 'reports+Reports.added']) {
      const queue = new Queue(name, { connection: redis, prefix });
      // A job ends after its reply.
      await eventually(
        `an empty queue ${name}`,
        () => queue.getJobCounts('active', 'waiting', 'delayed', 'failed'),
        (counts) => Object.values(counts).every((count) => count === 0),
      );
    }
  });
});

describeWith(['redis-server'], 'a job whose consumer was killed', () => {
  it('says that it was begun twice', async () => {
    const app = await QueueApp.start(places, { queues: { prefix: 'twice' } });
    await app.post('enqueue/noted', { args: ['twice', 1_000], id: 'twice' });
    const pid = await eventually(
      'its beginning',
      () => effects.lindex('runs:twice', 0),
      (value) => value !== null,
    );
    process.kill(Number(pid), 'SIGKILL');
    const job = await eventually(
      'its end',
      async () =>
        (await app.get('job/reports/twice').catch(() => ({ body: {} }))).body as { state?: string },
      ({ state }) => state === 'completed',
    );
    expect(job).toMatchObject({ attempts: 2, result: 'twice' });
  });
});
