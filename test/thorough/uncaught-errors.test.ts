import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClusterOptions } from 'nestjs-cluster';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type LogLine, stopAll } from '../support/cluster-process.js';
import { expectRestarts, replacementOf } from '../support/crashes.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { getJson, request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { isReaped } from '../support/processes.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

/** Two workers, or one; the first has a request in flight that waits for `release()`. */
async function startWithHeldRequest(options: ClusterOptions = {}) {
  const file = join(temporaryDirectory(), 'release');
  const cluster = await ClusterProcess.start({
    options: { ...options },
    env: { ...behaviour('crashes#faults'), TEST_RELEASE: file },
  });
  const [victim, other] = cluster.workerPids as [number, number?];
  const [holding, crashing] = [
    await agentOf(cluster.url, victim),
    await agentOf(cluster.url, victim),
  ];
  const held = request(cluster.url, '/hold', { agent: holding });
  await eventually(
    'the request in flight',
    async () => (await clusterReport(cluster.url)).workers.find(({ pid }) => pid === victim),
    (worker) => (worker?.requestsInFlight ?? 0) > 0,
  );
  return {
    cluster,
    victim,
    other,
    held,
    /** Has the first worker crash by a route of the behaviour. */
    crash: async (path: string): Promise<LogLine> => {
      await request(cluster.url, path, { agent: crashing });
      return cluster.event('worker-failing');
    },
    release: () => writeFileSync(file, ''),
  };
}

describe('an error in a worker that nobody caught', () => {
  it.each([
    { what: 'an exception', path: '/faults/throw', text: 'thrown outside of a request' },
    { what: 'a rejection', path: '/faults/reject', text: 'rejected outside of a request' },
  ])(
    'has it replaced at once, while it answers what it has begun, and ends then: $what',
    async ({ path, text }) => {
      const { cluster, victim, other, held, crash, release } = await startWithHeldRequest();

      const failing = await crash(path);

      expect(failing).toMatchObject({ level: 'error', worker: 0, pid: victim });
      expect(failing['error']).toMatchObject({ name: 'Error', message: text });
      expect(failing.message).toContain(`Error: ${text} at `);
      expect(failing.message).toContain('crashes.mjs');
      expect((failing['error'] as Error).stack).toMatch(
        new RegExp(`Error: ${text}\n +at throwNow `),
      );
      expect(cluster.output).not.toMatch(/^ +at throwNow /m);
      const ready = await replacementOf(cluster, 0, victim);
      expect(cluster.all('worker-died')).toEqual([]);
      for (let i = 0; i < 20; i++) {
        expect((await getJson(cluster.url, '/whoami')).body.pid).not.toBe(victim);
      }
      release();
      expect(await held).toMatchObject({ outcome: 'ok', headers: { connection: 'close' } });
      const died = await cluster.event('worker-died');
      expect(died).toMatchObject({ level: 'error', pid: victim, cause: 'crash' });
      expect(died['error']).toMatchObject({ message: text });
      expect(isReaped(victim)).toBe(true);

      expect(cluster.workerPids).toEqual([ready.pid, other]);
      expect(cluster.all('worker-died')).toHaveLength(1);
      expect(cluster.all('worker-restarting')).toMatchObject([{ slot: 0 }]);
      const { workers } = await clusterReport(cluster.url);
      expect(workers[0]!.lastExit).toMatchObject({ cause: 'crash', code: 1 });
      await expectRestarts(cluster, { crash: 1 });
    },
  );

  it('cuts what is still in flight at the drain deadline', async () => {
    const { cluster, victim, held, crash } = await startWithHeldRequest({
      workers: 1,
      shutdown: { drainTimeoutMs: 500 },
    });

    await crash('/faults/throw');

    expect((await held).outcome).toBe('reset');
    expect(await cluster.event('worker-died')).toMatchObject({ pid: victim, cause: 'crash' });
  });

  it.each([
    { what: 'by a second one', path: '/faults/twice', first: 'thrown first' },
    { what: 'by a storm of them', path: '/faults/storm', first: 'thrown again and again' },
  ])('is not kept from its drain $what', async ({ path, first }) => {
    const { cluster, victim, held, crash, release } = await startWithHeldRequest();

    await crash(path);
    const atLeast = path === '/faults/twice' ? 1 : 50;
    await cluster.until('more errors', () => cluster.all('warning').length >= atLeast);
    expect(cluster.all('warning').at(-1)).toMatchObject({
      pid: victim,
      message: expect.stringMatching(
        /uncaught error: Error: thrown (while draining|again and again)/,
      ),
    });
    release();

    expect((await held).outcome).toBe('ok');
    const died = await cluster.event('worker-died');
    expect(died).toMatchObject({ pid: victim, cause: 'crash', error: { message: first } });
    await replacementOf(cluster, 0, victim);
    expect(cluster.all('worker-failing')).toHaveLength(1);
    expect(cluster.all('worker-died')).toHaveLength(1);
    await expectRestarts(cluster, { crash: 1 });
  });

  it('counts once where the worker ends before its drain does', async () => {
    const { cluster, victim, held, crash } = await startWithHeldRequest();

    await crash('/faults/exit-while-draining');

    expect((await held).outcome).toBe('reset');
    expect(await cluster.event('worker-died')).toMatchObject({ pid: victim, cause: 'crash' });
    await replacementOf(cluster, 0, victim);
    expect(cluster.all('worker-restarting')).toHaveLength(1);
    await expectRestarts(cluster, { crash: 1 });
  });

  it('is one line of JSON without workers too', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 0 },
      env: behaviour('crashes#faults'),
    });

    await request(cluster.url, '/faults/throw');

    expect(await cluster.exited()).toEqual({ code: 1, signal: null });
    expect(cluster.all('failed')).toMatchObject([
      { level: 'error', error: { message: 'thrown outside of a request' } },
    ]);
    expect(cluster.output).not.toMatch(/^ +at throwNow /m);
  });

  it('that throws nothing at all is one like any other', async () => {
    const { cluster, victim, held, crash, release } = await startWithHeldRequest({ workers: 1 });

    expect(await crash('/faults/nothing')).toMatchObject({ pid: victim, level: 'error' });

    release();
    expect((await held).outcome).toBe('ok');
    expect(await cluster.event('worker-died')).toMatchObject({ pid: victim, cause: 'crash' });
  });

  it('does not hold up a shutdown, nor is it cut by one', async () => {
    const { cluster, held, crash, release } = await startWithHeldRequest({ workers: 1 });
    await crash('/faults/throw');

    cluster.kill('SIGTERM');

    await cluster.event('stopping');
    release();
    expect((await held).outcome).toBe('ok');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.survivors()).toEqual([]);
  });

  it('that comes in a lame duck ends that, is told, and lets the exit code be another than 0', async () => {
    const { cluster, victim, held, crash, release } = await startWithHeldRequest({
      workers: 1,
      shutdown: { lameDuckMs: 600_000 },
    });
    cluster.kill('SIGTERM');
    await cluster.event('worker-draining');

    const failing = await crash('/faults/throw');

    expect(failing).toMatchObject({ level: 'error', worker: 0, pid: victim });
    expect(failing['error']).toMatchObject({ message: 'thrown outside of a request' });
    // The primary still holds the socket: who comes now is accepted by nobody.
    await eventually(
      'nobody accepts',
      () => request(cluster.url, '/hello', { timeoutMs: 1_000 }),
      ({ outcome }) => outcome !== 'ok',
    );
    release();
    expect((await held).outcome).toBe('ok');
    const stopped = await cluster.event('worker-stopped');
    expect(stopped).toMatchObject({ level: 'error', pid: victim, abortedRequests: 0 });
    expect(stopped['problem']).toContain('Error: thrown outside of a request');
    expect(await cluster.exited()).toEqual({ code: 1, signal: null });
    expect(cluster.all('worker-failing')).toHaveLength(1);
    expect(cluster.all('worker-died')).toEqual([]);
  });

  it('is left to the app where that has a handler of its own', async () => {
    const cluster = await ClusterProcess.start({
      env: { ...behaviour('crashes#faults'), TEST_HANDLES: '1' },
    });
    const pids = cluster.workerPids;

    for (const path of ['/faults/throw', '/faults/reject']) await request(cluster.url, path);

    for (const text of ['thrown outside of a request', 'rejected outside of a request']) {
      await cluster.until('its handler', () => cluster.output.includes(`app handles: ${text}`));
    }
    expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
    expect(cluster.all('worker-failing')).toEqual([]);
    expect(cluster.all('worker-died')).toEqual([]);
    expect(cluster.workerPids).toEqual(pids);
  });
});
