import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { stopAll } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { RedisProcess } from '../../../../test/support/redis-process.js';
import { describeWith } from '../../../../test/support/system-packages.js';
import { QueueApp } from '../support/queue-app.js';

const WEB = { queues: { consume: false } };

describeWith(['redis-server'], 'methods with a queue', () => {
  let redis: RedisProcess;
  let places: { redis: RedisProcess; effects: RedisProcess };

  beforeAll(async () => {
    redis = await RedisProcess.start();
    places = { redis, effects: redis };
  });
  afterEach(stopAll);
  afterAll(() => redis.stop());

  it('run in a thread of a process that consumes the queue, and give back what they return or throw', async () => {
    const [web, consumer] = await Promise.all([
      QueueApp.start(places, WEB),
      QueueApp.start(places),
    ]);

    const { status, body } = await web.call('add', [2, 3]);
    expect([status, body]).toEqual([201, { sum: 5, isMainThread: false, pid: expect.any(Number) }]);
    expect(consumer.cluster.workerPids).toContain((body as { pid: number }).pid);
    expect(await web.post('rich', {})).toEqual({
      status: 201,
      body: [true, true, 'report', String(2n ** 70n)],
    });
    expect(await web.call('teapot', [])).toEqual({
      status: 418,
      body: { statusCode: 418, hint: 'short and stout' },
    });
  });

  it('can be enqueued, tried again and looked up', async () => {
    const app = await QueueApp.start(places);

    const { body } = await app.post('enqueue/add', { args: [4, 5], jobId: 'sum' });
    expect(body).toEqual({ id: 'reports/sum' });
    const job = () => app.get('job/reports/sum');
    const done = await eventually('the result', job, (answer) =>
      /completed/.test(JSON.stringify(answer)),
    );
    expect(done.body).toMatchObject({
      task: 'Reports.add',
      state: 'completed',
      attempts: 1,
      result: { sum: 9 },
    });

    await app.post('enqueue/teapot', { args: [], jobId: 'tea', attempts: 2 });
    const failing = () => app.get('job/reports/tea');
    const failed = await eventually('the failure', failing, (answer) =>
      /failed/.test(JSON.stringify(answer)),
    );
    expect(failed.body).toMatchObject({ state: 'failed', attempts: 2 });
    for (const id of ['none', 'meta', 'failed']) {
      expect((await app.get(`job/reports/${id}`)).body).toEqual({ state: 'forgotten' });
    }
  });

  it('are begun by another consumer if the consumer is drained before they end', async () => {
    const [web, first] = await Promise.all([
      QueueApp.start(places, WEB),
      QueueApp.start(places, { options: { shutdown: { drainTimeoutMs: 500 } } }),
    ]);
    const slow = web.call('noted', ['drained', 3_000]);
    await eventually(
      'the job begun',
      () => first.running(),
      (jobs) => jobs === 1,
    );
    const second = await QueueApp.start(places);

    first.cluster.kill('SIGTERM');
    expect((await first.cluster.exited()).code).toBe(0);

    expect(await slow).toEqual({ status: 201, body: 'drained' });
    expect(second.cluster.survivors()).not.toEqual([]);
  });

  it('wait about a second if a consumer has no room for them', async () => {
    const app = await QueueApp.start(places, {
      queues: { concurrency: 2 },
      env: { CLUSTER_THREADS: '1', TEST_MODULE_OPTIONS: '{"offload":{"maxQueue":0}}' },
    });
    await app.call('add', [1, 1]); // the thread has started
    const startedAt = performance.now();
    const both = ['a', 'b'].map((id) => app.call('noted', [`room-${id}`, 300]));

    expect((await Promise.all(both)).map(({ body }) => body)).toEqual(['room-a', 'room-b']);
    expect(performance.now() - startedAt).toBeLessThan(6_000);
  });

  it('fail with 504 after callTimeoutMs if nobody consumes them, and are not run later', async () => {
    const web = await QueueApp.start(places, { queues: { consume: false, callTimeoutMs: 500 } });

    expect((await web.call('add', [1, 1])).status).toBe(504);
    const waiting = 'nestjs_cluster_queue_jobs{queue="reports",state="waiting"}';
    await eventually(
      'no job left',
      () => web.metric(waiting),
      (jobs) => jobs === 0,
    );
  });
});

describeWith(['redis-server'], 'while Redis is away', () => {
  afterEach(stopAll);

  it.each([
    { onUnavailable: 'reject', status: 503, health: 'down' },
    { onUnavailable: 'local', status: 201, health: 'degraded' },
  ])('calls with onUnavailable: $onUnavailable end with $status', async (expected) => {
    const { onUnavailable, status, health } = expected;
    const redis = await RedisProcess.start();
    const app = await QueueApp.start({ redis, effects: redis }, { queues: { onUnavailable } });
    expect((await app.call('add', [1, 2])).status).toBe(201);

    await redis.stop();
    const call = () => app.call('add', [1, 2]);
    await eventually('the end of the connection', call, (answer) => answer.status === status);
    const { body } = await app.get('health');
    expect((body as { details: object }).details).toMatchObject({ queue: { status: health } });
    expect((await app.get('health/ready')).status).toBe(200);

    await redis.run();
    const away = (answer: Awaited<ReturnType<typeof call>>) =>
      answer.status === 201 && answer.body !== null;
    await eventually('an answer again', call, away);
    await redis.stop();

    const stoppedAt = performance.now();
    app.cluster.kill('SIGTERM');
    await app.cluster.exited();
    expect(performance.now() - stoppedAt, 'the shutdown').toBeLessThan(5_000);
  });

  it('a call to a Redis that hangs, and a look at a job, end with 503 within 6 s', async () => {
    const redis = await RedisProcess.start();
    const app = await QueueApp.start({ redis, effects: redis }, WEB);
    process.kill(redis.pid, 'SIGSTOP');
    const startedAt = performance.now();
    try {
      const ends = [app.call('add', [1, 2]), app.get('job/reports/none')];
      expect((await Promise.all(ends)).map(({ status }) => status)).toEqual([503, 503]);
      expect(performance.now() - startedAt).toBeLessThan(6_000);
    } finally {
      process.kill(redis.pid, 'SIGCONT');
      await stopAll();
      await redis.stop();
    }
  });
});
