import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { getJson, request } from '../support/http-client.js';
import { Gates, offloadOptions, offloadReport, TaskCounts } from '../support/offload.js';
import { IS_FIRST_RUN } from '../support/once.js';
import { niceValuesOf } from '../support/processes.js';

/** The same app in threads, and on the event loop: its clients see the same. */
const SETUPS = [
  { adapter: 'express', mode: 'threads' },
  { adapter: 'fastify', mode: 'threads' },
  { adapter: 'node', mode: 'threads' },
  // On the event loop the adapter makes no difference.
  { adapter: 'express', mode: 'inline' },
] as const;

describe.each(IS_FIRST_RUN ? SETUPS : [SETUPS[1]])(
  '@CpuBound() on $adapter, mode $mode',
  ({ adapter, mode }) => {
    const inline = mode === 'inline';
    let cluster: ClusterProcess;

    beforeAll(async () => {
      cluster = await ClusterProcess.start({
        options: { workers: 1 },
        env: {
          ...behaviour('offload-answers'),
          TEST_ADAPTER: adapter,
          CLUSTER_OFFLOAD: mode,
          CLUSTER_THREADS: '1',
        },
      });
    });
    afterAll(stopAll);

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
      const ran = async () => {
        const counts = await TaskCounts.of(cluster);
        return counts.of('completed') + counts.of('failed');
      };
      const before = await ran();

      const piped = await getJson(cluster.url, '/answers/decorated/seven?who=tom');
      const guarded = await getJson(cluster.url, '/answers/decorated/7?who=jerry');

      expect([piped.status, piped.body.message]).toEqual([400, expect.stringContaining('num')]);
      expect([guarded.status, guarded.body.message]).toEqual([403, 'jerry is not tom']);
      expect(await ran()).toBe(before);
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
      expect(body).toEqual({
        inMainThread: true,
        name: 'DomainError',
        message: 'there are no cats',
        code: 'E_NO_CATS',
        details: { missing: ['tom'] },
        isRangeError: true,
        // The thread threw it there.
        stack: expect.stringMatching(/Answers\.domainError \(.*offload-answers\.mjs:\d+/),
      });
    });

    if (!inline) {
      it('says once that the class of a result is lost', async () => {
        for (let i = 0; i < 2; i += 1) {
          const { body } = await getJson(cluster.url, '/answers/instance');
          expect(body).toEqual({ name: 'tom' });
        }
        await cluster.event('warning');
        expect(cluster.all('warning').map(({ message }) => message)).toEqual([
          expect.stringContaining(
            'Answers.instance returned an instance of Cat, which arrives as a plain object, so interceptors such as ClassSerializerInterceptor cannot recognise it; return plain data, or create the instance in the caller',
          ),
        ]);
      });
    }

    it('shows calls and threads in /metrics and /health', async () => {
      const before = await TaskCounts.of(cluster);
      await request(cluster.url, '/answers/missing/felix');
      await request(cluster.url, '/answers/decorated/7?who=tom');
      const after = await TaskCounts.of(cluster);

      for (const [outcome, task] of [
        ['failed', 'Answers.missing'],
        ['completed', 'Answers.decorated'],
      ] as const) {
        expect(after.of(outcome, task)).toBe(before.of(outcome, task) + 1);
      }
      for (const name of ['wait_seconds', 'run_seconds']) {
        const count = ({ page }: TaskCounts) =>
          page.sum(`nestjs_cluster_offload_${name}_count`, { task: 'Answers.missing' });
        expect(count(after)).toBe(count(before) + 1);
      }
      expect(after.page.labelValues('nestjs_cluster_offload_threads', 'worker')).toEqual(['0']);
      const threads = inline ? 0 : 1;
      expect([after.threads, after.queueSize]).toEqual([threads, 0]);
      expect(await offloadReport(cluster.url)).toEqual({
        status: 'up',
        threads,
        running: 0,
        queueSize: 0,
        maxQueue: 10_000,
      });
    });
  },
);

describe('the number of threads', () => {
  const gates = new Gates(afterAll);
  afterEach(stopAll);

  const start = (env: Record<string, string>, within: string[] = []) =>
    ClusterProcess.start({
      options: { workers: 1 },
      env: { ...behaviour('offload-faults'), ...gates.env, ...env },
      within,
    });

  it('is that of CLUSTER_THREADS, and each thread is nicer than the event loop in the end', async () => {
    // As many as there may be, whether calls wait or not.
    const cluster = await start({ ...offloadOptions({ minThreads: 256 }), CLUSTER_THREADS: '3' });

    const [pid] = cluster.workerPids;
    await eventually(
      'three nicer threads',
      async () => niceValuesOf(pid!),
      (values) => values.filter((value) => value === 10).length === 3,
    );
    expect(niceValuesOf(pid!)[0]).toBe(0);
    expect(await offloadReport(cluster.url)).toMatchObject({ status: 'up', threads: 3 });
  });

  it('is that of the cores that the process may use, once calls wait', async () => {
    const cluster = await start({}, ['taskset', '-c', '0']);
    expect((await TaskCounts.of(cluster)).threads).toBe(0);

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
});
