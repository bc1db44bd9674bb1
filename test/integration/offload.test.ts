import { availableParallelism } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { getJson, request } from '../support/http-client.js';
import {
  Gates,
  offloadOptions,
  offloadReport,
  TaskCounts,
  writtenTimes,
} from '../support/offload.js';
import { IS_FIRST_RUN, itOnce } from '../support/once.js';
import { niceValuesOf } from '../support/processes.js';

/** The same app in threads, and on the event loop: what its clients see is the same. */
const SETUPS = [
  { adapter: 'express', mode: 'threads' },
  { adapter: 'fastify', mode: 'threads' },
  { adapter: 'node', mode: 'threads' },
  // On the event loop there is nothing that the adapter has a part in.
  { adapter: 'express', mode: 'inline' },
] as const;

const TIMES = 'nestjs_cluster_offload_';

describe.each(IS_FIRST_RUN ? SETUPS : [SETUPS[1]])(
  '@CpuBound() on $adapter, mode $mode',
  ({ adapter, mode }) => {
    const inline = mode === 'inline';
    const gates = new Gates();
    let cluster: ClusterProcess;

    beforeAll(async () => {
      cluster = await ClusterProcess.start({
        options: { workers: 1 },
        env: {
          ...behaviour('offload-answers'),
          ...gates.env,
          ...offloadOptions({}),
          TEST_ADAPTER: adapter,
          CLUSTER_OFFLOAD: mode,
          CLUSTER_THREADS: '1',
        },
      });
    });

    afterAll(async () => {
      await stopAll();
      gates.remove();
    });

    it('leaves pipes, guards, interceptors, status, headers and metadata to a handler', async () => {
      const { status, headers, body } = await request(cluster.url, '/answers/decorated/7?who=tom');

      expect(status).toBe(202);
      expect(headers['x-cats']).toBe('nine');
      const { intercepted, inMainThread } = JSON.parse(body);
      expect(inMainThread).toBe(true);
      expect(intercepted).toMatchObject({
        squared: 49,
        isMainThread: inline,
        pid: cluster.workerPids[0],
      });
      expect(intercepted.threadId > 0).toBe(!inline);
    });

    it('runs nothing for a request that a pipe or a guard refuses', async () => {
      const before = await TaskCounts.of(cluster);

      const piped = await getJson(cluster.url, '/answers/decorated/seven?who=tom');
      const guarded = await getJson(cluster.url, '/answers/decorated/7?who=jerry');

      expect(piped).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining('num') },
      });
      expect(guarded).toMatchObject({ status: 403, body: { message: 'jerry is not tom' } });
      const after = await TaskCounts.of(cluster);
      expect(after.of('completed') + after.of('failed')).toBe(
        before.of('completed') + before.of('failed'),
      );
    });

    it('answers a NotFoundException by a 404 with its body', async () => {
      expect(await getJson(cluster.url, '/answers/missing/felix')).toEqual({
        status: 404,
        body: { statusCode: 404, message: 'no cat felix', hint: ['try tom'] },
      });
    });

    it('gives an error of the app to the exception filter of its class as it was thrown', async () => {
      const { status, body } = await getJson(cluster.url, '/answers/domain-error');

      expect(status).toBe(418);
      expect(body).toMatchObject({
        isError: true,
        inMainThread: true,
        name: 'DomainError',
        message: 'there are no cats',
        code: 'E_NO_CATS',
        details: { missing: ['tom'] },
        cause: {
          name: 'RangeError',
          message: 'nine is too many',
          code: 'E_NINE',
          isRangeError: true,
        },
      });
      // The stack shows where the thread threw the error, not where the caller received it.
      expect(body.stack).toMatch(/Answers\.domainError \(.*offload-answers\.mjs:\d+/);
    });

    it('gives instances of exported classes their class back', async () => {
      expect((await getJson(cluster.url, '/answers/cats')).body).toEqual([
        { cat: 'tom', inMainThread: true },
        { of: { cat: 'felix', inMainThread: true } },
      ]);
    });

    it('says once that the class of a result is lost', async () => {
      for (let i = 0; i < 2; i += 1) {
        const { body } = await getJson(cluster.url, '/answers/hidden');
        expect(body).toEqual({ words: 'no file exports my class' });
      }
      if (inline) return;
      const { message } = await cluster.event('warning');
      expect(message).toContain('returned an instance of Hidden, which arrives as a plain object');
      expect(cluster.all('warning')).toHaveLength(1);
    });

    it('leaves Buffers what they are, as arguments and as results', async () => {
      const { body } = await getJson(cluster.url, '/travels/buffers');

      const base64 = Buffer.from('there').toString('base64');
      expect(body).toEqual({
        seen: [
          [true, base64],
          [true, base64],
        ],
        isBuffer: true,
        back: 'back',
        sent: 5,
      });
    });

    it('says what in an argument cannot be copied', async () => {
      const { body } = await getJson(cluster.url, '/travels/bad-argument');

      expect(body).toMatchObject({ code: 'CLUSTER_UNCLONEABLE_VALUE' });
      expect(body.message).toContain('Travels.takes');
      expect(body.message).toContain('onDone() {} could not be cloned');
    });

    it('says what in a result cannot be copied', async () => {
      const { body } = await getJson(cluster.url, '/travels/bad-result');

      expect(body).toMatchObject({ code: 'CLUSTER_UNCLONEABLE_VALUE' });
      expect(body.message).toContain('format() {} could not be cloned');
    });

    it('carries a copy of a context', async () => {
      const { body } = await getJson(cluster.url, '/travels/context/r-1');

      expect(body.seen).toEqual({ id: 'r-1', late: true });
      expect(body.after).toEqual({ id: 'r-1' });
    });

    it('shows tasks and threads in /metrics and /health', async () => {
      const before = await TaskCounts.of(cluster);
      await request(cluster.url, '/answers/missing/felix');
      await request(cluster.url, '/answers/decorated/7?who=tom');
      const after = await TaskCounts.of(cluster);

      expect(after.of('failed', 'Answers.missing')).toBe(
        before.of('failed', 'Answers.missing') + 1,
      );
      expect(after.of('completed', 'Answers.decorated')).toBe(
        before.of('completed', 'Answers.decorated') + 1,
      );
      for (const name of ['wait_seconds', 'run_seconds']) {
        expect(after.page.sum(`${TIMES}${name}_count`, { task: 'Answers.missing' })).toBe(
          before.page.sum(`${TIMES}${name}_count`, { task: 'Answers.missing' }) + 1,
        );
      }
      expect(after.page.labelValues(`${TIMES}queue_size`, 'worker')).toEqual(['0']);
      expect(after.page.labelValues(`${TIMES}threads`, 'worker')).toEqual(['0']);
      expect(after.queueSize).toBe(0);
      expect(after.threads).toBe(inline ? 0 : 1);
      expect(await offloadReport(cluster.url)).toEqual({
        status: 'up',
        threads: inline ? 0 : 1,
        running: 0,
        queueSize: 0,
        maxQueue: 10_000,
      });
    });
  },
);

describe('offload.module', () => {
  afterEach(stopAll);

  it('is built once in each thread, injects there, and is closed when the worker ends', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: behaviour('offload-module'),
    });

    // Threads come one after the other, and the one that is there first takes what waits.
    const answers: { word: string; calls: number; threadId: number }[] = [];
    const threads = await eventually(
      'calls that ran in two threads',
      async () => {
        const asked = [300, 300, 0, 0, 0, 0].map((ms) => getJson(cluster.url, `/words/${ms}`));
        answers.push(...(await Promise.all(asked)).map(({ body }) => body));
        return [...new Set(answers.map(({ threadId }) => threadId))];
      },
      (ids) => ids.length === 2,
    );

    expect(new Set(answers.map(({ word }) => word))).toEqual(new Set(['cat']));
    for (const each of threads) {
      expect(writtenTimes(cluster, `built in thread ${each}`)).toBe(1);
      expect(writtenTimes(cluster, `closed in thread ${each}`)).toBe(0);
      // One instance of the class a thread.
      const counted = answers.filter(({ threadId }) => threadId === each).map((a) => a.calls);
      expect(counted.toSorted((a, b) => a - b)).toEqual(counted.map((_, i) => i + 1));
    }

    cluster.kill('SIGTERM');

    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    for (const each of threads) expect(writtenTimes(cluster, `closed in thread ${each}`)).toBe(1);
    expect(writtenTimes(cluster, 'closed in main')).toBe(1);
  });
});

describe('the number of threads', () => {
  const gates = new Gates();
  afterEach(stopAll);
  afterAll(() => gates.remove());

  const start = (workers: number, env: Record<string, string> = {}, within: string[] = []) =>
    ClusterProcess.start({
      options: { workers },
      env: { ...behaviour('offload-faults'), ...gates.env, ...offloadOptions({}), ...env },
      within,
    });

  /** As many as there can be, whether calls wait or not. */
  const ALL = offloadOptions({ minThreads: 256 });
  const started = (cluster: ClusterProcess, count: number) =>
    eventually(
      `${count} threads`,
      () => TaskCounts.of(cluster),
      ({ threads }) => threads === count,
    );

  it('is what CLUSTER_THREADS says, and each is nicer than the rest in the end', async () => {
    const cluster = await start(1, { ...ALL, CLUSTER_THREADS: '3' });

    await started(cluster, 3);
    const [pid] = cluster.workerPids;
    // The first one has loaded as the process runs, the others have not.
    await eventually(
      'their nice values',
      async () => niceValuesOf(pid!),
      (values) => values.filter((value) => value === 10).length === 3,
    );
    expect(niceValuesOf(pid!)[0]).toBe(0);
    expect(await offloadReport(cluster.url)).toMatchObject({ status: 'up', threads: 3 });
  });

  itOnce(
    'grows with the calls that wait to that of the cores in all workers together, with one in each',
    async () => {
      const cores = availableParallelism();
      const one = await start(1);
      expect((await TaskCounts.of(one)).threads).toBe(0);
      const held = Array.from({ length: cores + 2 }, (_, i) =>
        getJson(one.url, `/faults/hold/one-${i}`),
      );
      const busy = await eventually(
        'two calls to wait, while the others run',
        () => TaskCounts.of(one),
        ({ queueSize, page }) =>
          queueSize === 2 && page.sum('nestjs_cluster_offload_wait_seconds_count') === cores,
      );
      expect(busy.threads).toBe(cores);
      gates.open(...held.map((_, i) => `one-${i}`));
      const threads = (await Promise.all(held)).map(({ body }) => body.threadId);
      expect(new Set(threads).size).toBe(cores);
      await stopAll();

      const many = await start(cores + 1, ALL);
      expect(
        (await started(many, cores + 1)).page.values('nestjs_cluster_offload_threads'),
      ).toEqual(Array.from({ length: cores + 1 }, () => 1));
    },
  );

  it('heeds the cores that the process may use', async () => {
    const cluster = await start(1, {}, ['taskset', '-c', '0']);

    const held = ['core-0', 'core-1'].map((name) => getJson(cluster.url, `/faults/hold/${name}`));
    const busy = await eventually(
      'a call to run and one to wait',
      () => TaskCounts.of(cluster),
      ({ queueSize, page }) =>
        queueSize === 1 && page.sum('nestjs_cluster_offload_wait_seconds_count') === 1,
    );
    expect(busy.threads).toBe(1);
    gates.open('core-0', 'core-1');
    await Promise.all(held);
  });

  itOnce('is not to be evaded by several tasks a thread: that is refused', async () => {
    const cluster = new ClusterProcess({
      options: { workers: 1 },
      env: {
        ...behaviour('offload-faults'),
        TEST_MODULE_OPTIONS: JSON.stringify({ offload: { concurrentTasksPerWorker: 2 } }),
      },
    });

    expect(await cluster.exited()).toEqual({ code: 78, signal: null });
    expect(cluster.all('failed')[0]!.message).toContain('concurrentTasksPerWorker');
  });
});
