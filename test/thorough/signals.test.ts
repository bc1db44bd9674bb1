import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { drains } from '../support/drain.js';
import { Load, request } from '../support/http-client.js';
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
