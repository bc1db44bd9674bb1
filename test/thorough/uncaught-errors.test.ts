import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type LogLine, stopAll } from '../support/cluster-process.js';
import { expectRestarts, replacementOf } from '../support/replacements.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { getJson, request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { Gates } from '../support/offload.js';
import { isReaped } from '../support/processes.js';

afterEach(stopAll);

/** Two workers; the first has a request in flight that waits for `release()`. */
async function startWithHeldRequest() {
  const gates = new Gates();
  const cluster = await ClusterProcess.start({
    env: { ...behaviour('crashes#faults'), ...gates.env },
  });
  const [victim, other] = cluster.workerPids as [number, number];
  const [holding, crashing] = [
    await agentOf(cluster.url, victim),
    await agentOf(cluster.url, victim),
  ];
  const held = request(cluster.url, '/gate/held', { agent: holding });
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
    release: () => gates.open('held'),
  };
}

describe('an uncaught error in a worker', () => {
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

  it('is not kept from its drain by a storm of them', async () => {
    const { cluster, victim, held, crash, release } = await startWithHeldRequest();

    await crash('/faults/storm');
    await cluster.until('more errors', () => cluster.all('warning').length >= 50);
    expect(cluster.all('warning').at(-1)).toMatchObject({
      pid: victim,
      message: expect.stringContaining('uncaught error: Error: thrown again and again'),
    });
    release();

    expect((await held).outcome).toBe('ok');
    const died = await cluster.event('worker-died');
    expect(died).toMatchObject({ pid: victim, cause: 'crash' });
    await replacementOf(cluster, 0, victim);
    expect(cluster.all('worker-failing')).toHaveLength(1);
    expect(cluster.all('worker-died')).toHaveLength(1);
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
