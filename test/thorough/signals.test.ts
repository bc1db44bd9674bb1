import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { drains } from '../support/drain.js';
import { Load, type Outcome, request } from '../support/http-client.js';
import { agentOf, keepAliveAgent } from '../support/keep-alive-agent.js';
import { Gates } from '../support/offload.js';
import { isReaped } from '../support/processes.js';
import { scrape } from '../support/scrape.js';

afterEach(stopAll);

/** A request that a worker is busy with: resolves when its handling has begun. */
async function begin(cluster: ClusterProcess, path: string, agent = keepAliveAgent()) {
  const answer = request(cluster.url, path, { agent });
  await cluster.until(`begun ${path}`, () => cluster.output.includes(`began GET ${path}`));
  return { answer };
}

// S1, S4 and S5, which are promises in seconds, are in seconds/deadlines.test.ts.
describe('a request in flight when the cluster is told to stop', () => {
  it.each([
    { adapter: 'fastify', target: 'the primary', workers: 1 },
    // As systemd does by default, and `kill 0`.
    { adapter: 'express', target: 'the whole process group', workers: 2 },
  ])(
    'is answered before the exit, and nobody else is let in (S2, $adapter, $target)',
    async ({ adapter, target, workers }) => {
      const gates = Gates.forTest();
      const cluster = await ClusterProcess.start({
        options: { workers },
        env: { ...behaviour('streams#announced'), ...gates.env, TEST_ADAPTER: adapter },
        within: ['setsid'],
      });
      const slow = await begin(cluster, '/gate/slow');

      process.kill(target === 'the primary' ? cluster.pid : -cluster.pid, 'SIGTERM');
      await cluster.event('stopping');
      const later: Outcome[] = [];
      let exited = false;
      const closed = cluster.exited().then((exit) => {
        exited = true;
        return exit;
      });
      while (!exited) {
        later.push((await request(cluster.url, '/hello')).outcome);
        // Refused for a while, with the request still in flight.
        if (later.filter((each) => each === 'refused').length === 10) gates.open('slow');
        await delay(20);
      }

      const { outcome, headers, body } = await slow.answer;
      expect(outcome).toBe('ok');
      expect(headers.connection).toBe('close');
      expect(JSON.parse(body)).toEqual({ passed: 'slow' });
      expect(await closed).toEqual({ code: 0, signal: null });
      expect(cluster.all('worker-died')).toEqual([]);
      // Later connections are refused, so that a client can try another server. They do not wait.
      expect(later).not.toContain('timeout');
      expect(later).toContain('refused');
      expect(later.lastIndexOf('ok')).toBeLessThan(later.indexOf('refused'));
      // Only connections made at the moment of closing the socket may be reset.
      expect(later.filter((each) => each === 'reset').length).toBeLessThanOrEqual(2);
    },
  );
});

describe('a signal to one worker', () => {
  it('SIGTERM drains and replaces it, and is no failure', async () => {
    const gates = Gates.forTest();
    const cluster = await ClusterProcess.start({
      env: { ...behaviour('streams#announced'), ...gates.env },
    });
    const [asked, other] = cluster.workerPids as [number, number];
    const slow = await begin(cluster, '/gate/slow', await agentOf(cluster.url, asked));
    const load = new Load(cluster.url, '/hello', { clients: 4, pauseMs: 4 });

    process.kill(asked, 'SIGTERM');

    const draining = await cluster.event('worker-draining');
    expect(draining).toMatchObject({ level: 'info', worker: 0, pid: asked, cause: 'signal' });
    await drains(asked);
    gates.open('slow');
    const { outcome, headers } = await slow.answer;
    expect(outcome).toBe('ok');
    expect(headers.connection).toBe('close');
    const stopped = await cluster.event('worker-stopped');
    expect(stopped).toMatchObject({
      level: 'info',
      worker: 0,
      pid: asked,
      cause: 'signal',
      problem: null,
      destroyedConnections: 0,
    });
    await cluster.until('a replacement', () => cluster.all('worker-ready').length === 3);
    const [replacement, untouched] = cluster.workerPids;
    expect(replacement).not.toBe(asked);
    expect(untouched).toBe(other);
    await load.serves(20);
    expect(await load.stop()).toEqual({
      ok: expect.any(Number),
      'bad-status': 0,
      reset: 0,
      refused: 0,
      timeout: 0,
    });

    expect(cluster.all('worker-died')).toEqual([]);
    expect(cluster.all('worker-restarting')).toEqual([]);
    expect(isReaped(asked)).toBe(true);
    const metrics = await scrape(cluster.url);
    expect(metrics.values('nestjs_cluster_worker_restarts_total').length).toBeGreaterThan(0);
    expect(metrics.sum('nestjs_cluster_worker_restarts_total')).toBe(0);
  });

  it('SIGINT, SIGHUP, SIGTTIN and SIGTTOU are left to the primary', async () => {
    const cluster = await ClusterProcess.start({ options: { workers: 1 } });
    const [pid] = cluster.workerPids as [number];
    const agent = await agentOf(cluster.url, pid);

    for (const signal of ['SIGINT', 'SIGHUP', 'SIGTTIN', 'SIGTTOU'] as const) {
      process.kill(pid, signal);

      // Its next answers come from a process that has had the signal.
      for (let i = 0; i < 3; i++) {
        const { outcome, body, headers } = await request(cluster.url, '/whoami', { agent });
        expect([signal, outcome]).toEqual([signal, 'ok']);
        expect(JSON.parse(body)).toMatchObject({ pid });
        expect(headers.connection).not.toBe('close');
      }
      expect(cluster.all('worker-died')).toEqual([]);
      expect(cluster.all('worker-draining')).toEqual([]);
      expect(cluster.all('scaling')).toEqual([]);
      expect(cluster.all('reload-started')).toEqual([]);
    }
  });
});
