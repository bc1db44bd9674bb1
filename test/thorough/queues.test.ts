import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { OtlpReceiver } from '../support/otlp-receiver.js';
import { QueueApp } from '../support/queue-app.js';
import { RedisProcess } from '../support/redis-process.js';
import { describeWith } from '../support/system-packages.js';

/** The apps' lock duration plus their interval of checks for stalled jobs. */
const LOCK_AND_STALLED_MS = 1_500;
const SLACK_MS = 4_000;

/** Sets the clock of a consumer forward, so that every call seems to have timed out long ago. */
const AHEAD = {
  LD_PRELOAD:
    process.env['TEST_LIBFAKETIME'] ?? '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1',
  FAKETIME: '+120s',
  FAKETIME_DONT_FAKE_MONOTONIC: '1',
};

const places = {} as { redis: RedisProcess; effects: RedisProcess };
let directory: string;
let effects: Redis;
let redis: Redis;
let queue: Queue;

/** How often a job was begun. */
const runs = (id: string) => effects.llen(`runs:${id}`);
const begun = (id: string, times = 1) =>
  eventually(
    `run ${times} of ${id}`,
    () => runs(id),
    (count) => count >= times,
  );

async function startAll(): Promise<void> {
  directory = await mkdtemp(join(tmpdir(), 'queues-'));
  places.redis = await RedisProcess.start(directory);
  places.effects = await RedisProcess.start();
  effects = new Redis(places.effects.port, '127.0.0.1');
  redis = new Redis(places.redis.port, '127.0.0.1', { maxRetriesPerRequest: null });
  queue = new Queue('reports', { connection: redis });
  for (const each of [effects, redis, queue]) each.on('error', () => {});
}

async function endAll(): Promise<void> {
  await stopAll();
  effects.disconnect();
  redis.disconnect();
  await places.redis.stop();
  await places.effects.stop();
  await rm(directory, { recursive: true });
}

describeWith(['redis-server'], 'a method with a queue', () => {
  let web: QueueApp;
  let consumer: QueueApp;

  beforeAll(async () => {
    await startAll();
    [web, consumer] = await Promise.all([
      QueueApp.start(places, { queues: { consume: false, maxPayloadBytes: 4_096 } }),
      QueueApp.start(places, {
        queues: { maxPayloadBytes: 4_096 },
        // The worker that is stopped for a while must not count as hung, even on a slow machine.
        options: { workers: 2, hangTimeoutMs: 60_000 },
        env: { CLUSTER_CONSUME: 'reports', CLUSTER_THREADS: '1' },
      }),
    ]);
  });
  afterAll(endAll);

  it('is run by a thread of another cluster, and answers as if it had run here', async () => {
    const { body } = await web.call('add', [1, 2]);
    expect(body).toMatchObject({ sum: 3, isMainThread: false });
    expect(consumer.cluster.workerPids).toContain((body as { pid: number }).pid);
    expect(await web.call('teapot', [])).toEqual({
      status: 418,
      body: { statusCode: 418, hint: 'short and stout' },
    });
    expect((await web.post('rich', {})).body).toEqual([true, true, 'report', String(2n ** 70n)]);
  });

  it('is enqueued once for an id, and told of by it', async () => {
    const options = { args: ['once', 1], id: 'once' };
    const first = await web.post('enqueue/noted', options);
    await web.post('enqueue/noted', options);
    expect(first.body).toEqual({ id: 'reports/once' });
    const state = () => web.get('job/reports/once').then(({ body }) => body as { state: string });
    const job = await eventually('its end', state, (each) => each.state === 'completed');
    expect(job).toMatchObject({ task: 'Reports.noted', attempts: 1, result: 'once' });
    await web.post('enqueue/noted', options);
    expect(await runs('once')).toBe(1);
    expect((await web.get('job/reports/never')).body).toEqual({ state: 'forgotten' });
    expect((await web.post('enqueue/noted', { args: [], id: '7' })).status).toBe(500);
  });

  it('is run again within lock and stalled time when its consumer is killed', async () => {
    const answer = web.call('noted', ['killed', 1_000]);
    await begun('killed');
    const killedAt = performance.now();
    process.kill(Number(await effects.lindex('runs:killed', 0)), 'SIGKILL');
    await begun('killed', 2);
    expect(performance.now() - killedAt).toBeLessThan(LOCK_AND_STALLED_MS + SLACK_MS);
    expect(await answer).toEqual({ status: 201, body: 'killed' });
    expect(await runs('killed')).toBe(2);
  });

  it('answers once when its job is delivered twice', async () => {
    const late = 'nestjs_cluster_queue_replies_dropped_total{reason="late"}';
    const before = (await web.metric(late)) || 0;
    const answer = web.call('noted', ['twice', 1_000]);
    await begun('twice');
    const first = Number(await effects.lindex('runs:twice', 0));
    // Its lock lapses, though it is alive.
    process.kill(first, 'SIGSTOP');
    await begun('twice', 2);
    process.kill(first, 'SIGCONT');
    expect(await answer).toEqual({ status: 201, body: 'twice' });
    await eventually(
      'the second reply',
      () => web.metric(late),
      (count) => count === before + 1,
    );
  });

  it('is ended, or never begun, when its client leaves', async () => {
    const leave = new AbortController();
    const idle = () =>
      eventually(
        'no job in hand',
        () => consumer.running(),
        (count) => count === 0,
      );
    const calls = ['left-1', 'left-2', 'left-3'].map((id) =>
      web.call('burned', [id, 60_000], leave.signal).catch(() => 'left'),
    );
    await eventually(
      'two that run, one that waits',
      () => queue.getJobCounts('active', 'waiting'),
      ({ active, waiting }) => active === 2 && waiting === 1,
    );
    leave.abort();
    expect(await Promise.all(calls)).toEqual(['left', 'left', 'left']);
    await eventually(
      'an empty queue',
      () => queue.getJobCounts('active', 'waiting'),
      ({ active, waiting }) => active === 0 && waiting === 0,
    );
    await idle();
    expect((await web.call('add', [1, 1])).status).toBe(201);
  });

  it('refuses what is larger than it may be, in words', async () => {
    const large = await web.call('echo', ['x'.repeat(5_000)]);
    expect(large.status).toBe(500);
    await web.cluster.until('the reason', () =>
      web.cluster.output.includes(
        'the arguments of Reports.echo have more than maxPayloadBytes (4096) as JSON',
      ),
    );
    const result = await web.call('repeated', ['x', 5_000]);
    expect(result.status).toBe(500);
    await web.cluster.until('the reason', () =>
      web.cluster.output.includes('the result of Reports.repeated has 5002 bytes as JSON'),
    );
    expect((await web.call('add', [1, 1])).status).toBe(201);
  });

  it('comes to no harm by hostile jobs and replies', async () => {
    const call = { id: 'x-1', replyTo: 'x', deadline: Date.now() + 60_000 };
    const job = { v: 1, task: 'Reports.add', args: [1, 2] };
    const hostile: unknown[] = [
      null,
      'text',
      { ...job, args: 'none' },
      { ...job, call: { ...call, replyTo: 'reports:meta' } },
      { ...job, args: [{ $: 'eval', v: 'process.exit()' }] },
      JSON.parse('{"__proto__":{"v":1},"constructor":{"prototype":{}}}'),
    ];
    for (const data of hostile) await queue.add('hostile', data);
    // Names that nobody has: they wait for a consumer that knows them.
    const unknown = ['../../etc/passwd', '__proto__', 'constructor', 'file:///x.mjs#run'];
    for (const task of unknown) await queue.add('hostile', { ...job, task });
    await queue.add('hostile', { ...job, v: 2 });
    await eventually(
      'an end of each',
      () => queue.getJobCounts('failed', 'delayed'),
      ({ failed, delayed }) => failed! >= hostile.length && delayed === unknown.length + 1,
    );
    for (const key of await redis.keys('bull:nestjs-cluster:replies:*')) {
      await redis.xadd(key, '*', 'm', '{"v":1,"id":"__proto__","ok":true}');
      await redis.xadd(key, '*', 'other', 'field');
    }
    expect((await web.call('add', [20, 22])).body).toMatchObject({ sum: 42 });
    expect(consumer.cluster.all('worker-died')).toHaveLength(1); // the one that was killed above
    await queue.obliterate({ force: true });
  });

  it('is one of the sample app, which shows both verbs', async () => {
    const sample = await ClusterProcess.start({
      program: 'sample',
      options: { workers: 1 },
      env: {
        REDIS_URL: `redis://127.0.0.1:${places.redis.port}`,
        SAMPLE_OPTIONS: JSON.stringify({ workers: 1, port: 0 }),
      },
    });
    const at = async (path: string, method = 'GET') =>
      (await fetch(`${sample.url}${path}`, { method })).json() as Promise<Record<string, unknown>>;
    const answer = { n: 10, fibonacci: 55 };
    expect(await at('/queued/fib/10')).toEqual(answer);
    const { id } = await at('/jobs/fib/10', 'POST');
    const job = await eventually(
      'its end',
      () => at(`/jobs/${String(id)}`),
      ({ state }) => state === 'completed',
    );
    expect(job).toMatchObject({ task: 'QueuedController.fib', result: answer });
  });

  it('waits in a rollout for a consumer that knows it', async () => {
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const next = await QueueApp.start(places, { env: { TEST_NEW_METHOD: 'yes' } });
    await redis.config('SET', 'maxmemory-policy', 'noeviction');
    expect(await next.call('added', [])).toEqual({ status: 201, body: 'new' });
    // Old clients' calls are run by new consumers, too.
    expect((await web.call('add', [1, 1])).status).toBe(201);
    expect(next.cluster.output.match(/maxmemory-policy allkeys-lru/g)).toHaveLength(1);

    // A consumer that drains ends what it has in hand.
    const ids = Array.from({ length: 6 }, (_, i) => `drained-${i}`);
    const answers = ids.map((id) => web.call('noted', [id, 300]));
    await begun('drained-0');
    next.cluster.kill('SIGTERM');
    expect((await next.cluster.exited()).code).toBe(0);
    expect((await Promise.all(answers)).map(({ body }) => body)).toEqual(ids);
    expect(await Promise.all(ids.map(runs))).toEqual(ids.map(() => 1));
  });
});

describeWith(['redis-server'], 'the trace of a queued call', () => {
  beforeAll(startAll);
  afterAll(endAll);

  it('goes on in the thread of its consumer, as that of a job', async () => {
    const receiver = await OtlpReceiver.open();
    const preload = new URL('../fixtures/preload/tracing.mjs', import.meta.url).href;
    const env = { ...receiver.env, OTEL_METRICS_EXPORTER: 'none' };
    const traced = { execArgv: ['--import', preload], env };
    const apps = await Promise.all([
      QueueApp.start(places, { ...traced, queues: { consume: false } }),
      QueueApp.start(places, { ...traced, env: { ...env, OTEL_SDK_DISABLED: 'false' } }),
    ]);
    const [web, consumer] = apps;
    expect((await web.call('traced', [])).status).toBe(201);
    await web.post('enqueue/traced', { args: [], id: 'traced' });
    const state = () => web.get('job/reports/traced').then(({ body }) => body as { state: string });
    await eventually('its end', state, (job) => job.state === 'completed');
    const consumerPid = String(consumer.cluster.workerPids[0]);
    for (const { cluster } of apps) {
      cluster.kill('SIGTERM');
      expect((await cluster.exited()).code).toBe(0);
    }
    for (const path of ['/call/traced', '/enqueue/traced']) {
      const request = receiver.requests.find(({ attributes }) => attributes['url.path'] === path)!;
      expect(
        receiver
          .childrenOf(request)
          .map(({ name, resource }) => [name, String(resource['process.pid'])]),
      ).toEqual([['inner', consumerPid]]);
    }
    receiver.close();
  });
});

describeWith(['redis-server', 'faketime'], 'a Redis that goes away', () => {
  beforeAll(startAll);
  afterEach(async () => {
    await stopAll();
    // A test that failed in the middle leaves it ended.
    await places.redis.stop();
    await places.redis.run();
  });
  afterAll(endAll);

  const lines = (app: QueueApp, text: string) => app.cluster.output.split(text).length - 1;

  it('is waited for from the start on, run without, and taken up', async () => {
    await places.redis.stop();
    const [rejects, runsHere] = await Promise.all([
      QueueApp.start(places),
      QueueApp.start(places, { queues: { onUnavailable: 'local' } }),
    ]);
    const { status, body } = await rejects.call('add', [1, 2]);
    expect(status).toBe(503);
    expect(body).toMatchObject({
      message: 'Reports.add was not begun: its queue cannot be reached',
    });
    expect((await rejects.post('enqueue/add', { args: [1, 2] })).status).toBe(503);
    expect(await rejects.get('job/reports/any')).toMatchObject({
      status: 503,
      body: { message: 'reports/any was not looked up: its queue cannot be reached' },
    });
    expect((await rejects.get('health')).body).toMatchObject({
      status: 'error',
      error: { queue: { status: 'down' } },
    });
    expect((await runsHere.call('add', [1, 2])).body).toMatchObject({
      sum: 3,
      isMainThread: false,
    });
    await places.redis.run();
    await eventually(
      'an answer by the queue',
      () => rejects.call('add', [1, 2]),
      (answer) => answer.status === 201,
    );
    for (const app of [rejects, runsHere]) {
      await app.cluster.until('its return', () => lines(app, 'Redis of the queues is back') === 1);
      expect(lines(app, 'Redis of the queues cannot be reached')).toBe(1);
    }
  });

  it('costs no answer of a call that it goes away under', async () => {
    const app = await QueueApp.start(places);
    const ids = ['middle-1', 'middle-2', 'middle-3'];
    const answers = ids.map((id) => app.call('noted', [id, 500]));
    await begun('middle-1');
    await places.redis.stop();
    const meanwhile = await eventually(
      'a refusal',
      () => app.call('add', [1, 2]),
      (answer) => answer.status === 503,
    );
    expect(meanwhile.status).toBe(503);
    await places.redis.run();
    expect((await Promise.all(answers)).map(({ body }) => body)).toEqual(ids);
    expect((await app.call('add', [1, 2])).status).toBe(201);
    expect(lines(app, 'Redis of the queues cannot be reached')).toBe(1);
    expect(app.cluster.all('worker-died')).toEqual([]);
  });

  it('is as good as away while it hangs, and what it refuses is said once', async () => {
    const app = await QueueApp.start(places);
    expect((await app.call('add', [1, 2])).status).toBe(201);
    process.kill(places.redis.pid, 'SIGSTOP');
    const under = app.call('add', [20, 22]);
    await app.cluster.until('word of it', () => lines(app, 'it did not answer within 5 s') === 1);
    expect((await under).status).toBe(503);
    expect((await app.call('add', [1, 2])).status).toBe(503);
    expect((await app.get('health')).status).toBe(503);
    process.kill(places.redis.pid, 'SIGCONT');
    await app.cluster.until('word of its end', () => lines(app, 'of the queues is back') === 1);
    expect((await app.call('add', [20, 22])).body).toMatchObject({ sum: 42 });

    await redis.config('SET', 'maxmemory', '1mb');
    const refused = await Promise.all(Array.from({ length: 20 }, () => app.call('add', [1, 2])));
    await redis.config('SET', 'maxmemory', '0');
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
    expect(lines(app, 'queue reports does not take Reports.add: OOM')).toBe(1);
  });

  it('has the clock that machines tell deadlines by, however far ahead their own is', async () => {
    const queues = { prefix: 'clock' };
    const [web] = await Promise.all([
      QueueApp.start(places, { queues: { ...queues, consume: false, callTimeoutMs: 20_000 } }),
      QueueApp.start(places, { queues, env: AHEAD }),
    ]);
    expect((await web.call('add', [20, 22])).body).toMatchObject({ sum: 42 });
  });

  it('does not keep a process from ending', async () => {
    const app = await QueueApp.start(places, {
      options: { shutdown: { drainTimeoutMs: 4_000 } },
    });
    const answer = app.call('noted', ['unfinished', 60_000]).catch((error: Error) => error);
    await begun('unfinished');
    const before = Date.now();
    await places.redis.stop();
    app.cluster.kill('SIGTERM');
    expect((await app.cluster.exited()).code).toBe(0);
    expect(Date.now() - before).toBeLessThan(4_000 + SLACK_MS);
    await answer;
    await app.cluster.gone();

    // The job is another's, by its lock.
    await places.redis.run();
    await QueueApp.start(places, { queues: { maxStalledCount: 10 } });
    await begun('unfinished', 2);
  });

  it('gives the job of a process that ends to another at once, while it is there', async () => {
    const app = await QueueApp.start(places, {
      queues: { lockMs: 60_000, prefix: 'back' },
      options: { shutdown: { drainTimeoutMs: 500 } },
    });
    await app.post('enqueue/noted', { args: ['given-back', 3_000] });
    await begun('given-back');
    app.cluster.kill('SIGTERM');
    expect((await app.cluster.exited()).code).toBe(0);
    await QueueApp.start(places, { queues: { prefix: 'back' } });
    await begun('given-back', 2);
  });
});
