import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { FaultyLink } from '../support/faulty-link.js';
import { type Answer, QueueApp, type QueueAppOptions } from '../support/queue-app.js';
import { RedisProcess } from '../support/redis-process.js';
import { describeWith } from '../support/system-packages.js';

const MB = 1024 * 1024;
const CALLS = 40;
/** Whether the client of call `i` goes away before the answer. */
const leaves = (i: number) => i % 4 === 3;

let redis: RedisProcess;
let effects: RedisProcess;
let noted: Redis;
let direct: Redis;
let link: FaultyLink;

beforeAll(async () => {
  redis = await RedisProcess.start();
  effects = await RedisProcess.start();
  noted = new Redis(effects.port, '127.0.0.1');
  direct = new Redis(redis.port, '127.0.0.1', { maxRetriesPerRequest: null });
  direct.on('error', () => {});
  link = await FaultyLink.open(redis.port);
});
afterEach(stopAll);
afterAll(async () => {
  link.close();
  noted.disconnect();
  direct.disconnect();
  await redis.stop();
  await effects.stop();
});

/** A web process and a consumer, each of which has Redis behind the link. */
function startBoth(prefix: string): Promise<[QueueApp, QueueApp]> {
  const queues = { prefix, callTimeoutMs: 60_000, maxStalledCount: 100, lockMs: 3_000 };
  const start = (options: QueueAppOptions) =>
    QueueApp.start({ redis: link, effects }, { execArgv: ['--expose-gc'], ...options });
  return Promise.all([
    start({ queues: { ...queues, consume: false } }),
    start({ queues, env: { CLUSTER_THREADS: '4' } }),
  ]);
}

/**
 * Calls of which some are left; the answers of the others, by id. All of them are in the web process
 * and one has begun to run, because calls that come while Redis is away are refused.
 */
async function callAll(web: QueueApp, name: string, ms: number) {
  const before = Number((await web.get('calls')).body);
  const leave = new AbortController();
  const ids = Array.from({ length: CALLS }, (_, i) => `${name}-${i}`);
  const answers = ids.map((id, i) =>
    web.call('noted', [id, ms], leaves(i) ? leave.signal : undefined).catch(() => 'left' as const),
  );
  await eventually(
    'all of them in the web process',
    async () => Number((await web.get('calls')).body) - before,
    (count) => count === CALLS,
  );
  await eventually(
    'the first of them',
    () => noted.llen(`runs:${name}-0`),
    (count) => count > 0,
  );
  return { leave, ids, answers: Promise.all(answers) };
}

function expectOwn(ids: readonly string[], answers: readonly (Answer | 'left')[]): void {
  for (const [i, answer] of answers.entries()) {
    // Its client may have left after the answer.
    if (leaves(i) && answer === 'left') continue;
    expect(answer).toEqual({ status: 201, body: ids[i] });
  }
}

/** Nothing is left of those who have left, nor of those who were answered. */
async function expectNothingLeft(prefix: string, web: QueueApp, consumer: QueueApp) {
  const queue = new Queue('reports', { connection: direct, prefix });
  const jobs = () => queue.getJobCounts('active', 'waiting', 'delayed', 'failed');
  await eventually('an empty queue', jobs, (counts) =>
    Object.values(counts).every((count) => count === 0),
  );
  await eventually(
    'no job in hand',
    () => consumer.running(),
    (running) => running === 0,
  );
  expect((await web.call('add', [20, 22])).body).toMatchObject({ sum: 42 });
  for (const { cluster } of [web, consumer]) expect(cluster.all('worker-died')).toEqual([]);
}

describeWith(['redis-server'], 'calls whose connections to Redis', () => {
  it.each([
    [
      'are closed by Redis',
      async () => {
        // But this one.
        await direct.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      },
    ],
    ['are cut in the network', async () => link.cut()],
  ] as const)('%s are answered, each by its own result', async (how, cut) => {
    const prefix = how.split(' ')[1]!;
    const [web, consumer] = await startBoth(prefix);
    expect((await web.call('add', [1, 2])).status).toBe(201);
    const { leave, ids, answers } = await callAll(web, prefix, 200);
    for (let times = 0; times < 4; times += 1) {
      await cut();
      if (times === 1) leave.abort();
      await delay(300);
    }
    expectOwn(ids, await answers);
    await expectNothingLeft(prefix, web, consumer);
  });

  it('are silent for a while are answered when others can be made', async () => {
    const [web, consumer] = await startBoth('silent');
    expect((await web.call('add', [1, 2])).status).toBe(201);
    const { leave, ids, answers } = await callAll(web, 'silent', 100);
    link.fallSilent();
    const under = web.call('add', [2, 2]);
    leave.abort();
    await web.cluster.until('word of it', () =>
      web.cluster.output.includes('it did not answer within 5 s'),
    );
    expect((await web.call('add', [1, 2])).status).toBe(503);
    link.speak();
    expectOwn(ids, await answers);
    expect((await under).status).toBe(503);
    await eventually(
      'an answer',
      () => web.call('add', [1, 2]),
      ({ status }) => status === 201,
    );
    await expectNothingLeft('silent', web, consumer);
  });
});

describeWith(['redis-server'], 'a thousand calls of one process at a time', () => {
  it('have each their own answer, also where others leave, and take no memory that stays', async () => {
    const [web, consumer] = await startBoth('thousand');
    const filler = 'x'.repeat(4_000);
    const queue = new Queue('reports', { connection: direct, prefix: 'thousand' });
    const inRedis = async () => {
      const { waiting = 0, active = 0 } = await queue.getJobCounts('waiting', 'active');
      return waiting + active;
    };
    const round = async (name: string) => {
      const leave = new AbortController();
      const calls = Array.from({ length: 1_000 }, async (_, i) => {
        const value = { id: `${name}-${i}`, filler };
        const signal = leaves(i) ? leave.signal : undefined;
        const answer = await web.call('echo', [value], signal).catch(() => 'left');
        if (answer !== 'left') expect(answer).toEqual({ status: 201, body: value });
        return answer === 'left';
      });
      await eventually('calls that wait', inRedis, (count) => count > 300);
      leave.abort();
      const left = (await Promise.all(calls)).filter(Boolean).length;
      expect(left).toBeGreaterThan(0);
      await expectNothingLeft('thousand', web, consumer);
    };
    const heap = async (app: QueueApp) => Number((await app.get('heap')).body);
    await round('first');
    const before = await Promise.all([web, consumer].map(heap));
    for (const name of ['second', 'third']) await round(name);
    const after = await Promise.all([web, consumer].map(heap));
    // There were 2,000 calls. The argument of each call has 4,000 characters.
    for (const [i, bytes] of after.entries()) expect(bytes - before[i]!).toBeLessThan(4 * MB);
    console.log(after.map((bytes, i) => `${((bytes - before[i]!) / MB).toFixed(1)} MB`).join(', '));
  });
});
