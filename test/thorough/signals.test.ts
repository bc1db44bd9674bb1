import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type Exit, stopAll } from '../support/cluster-process.js';
import { clusterReport } from '../support/health.js';
import { Load, type Outcome, request } from '../support/http-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import { agentOf, keepAliveAgent } from '../support/keep-alive-agent.js';
import { Gates } from '../support/offload.js';
import { childrenOf, isReaped } from '../support/processes.js';
import { ANNOUNCE_PROCESSES, startedProcesses } from '../support/started-processes.js';

afterEach(stopAll);

/** Sends a signal and resolves with the exit, and how long it took. */
async function exitAfter(
  cluster: ClusterProcess,
  send: () => void,
): Promise<Exit & { tookMs: number }> {
  const sentAt = performance.now();
  send();
  const exit = await cluster.exited(10_000);
  return { ...exit, tookMs: performance.now() - sentAt };
}

/** A request that a worker is busy with: resolves when its handling has begun. */
async function begin(cluster: ClusterProcess, path: string, agent = keepAliveAgent()) {
  const answer = request(cluster.url, path, { agent, timeoutMs: 30_000 });
  await cluster.until(`begun ${path}`, () => cluster.output.includes(`began GET ${path}`));
  return { answer };
}

describe('an idle cluster', () => {
  it.each([
    { signal: 'SIGTERM', target: 'the primary' },
    // As Ctrl-C does.
    { signal: 'SIGINT', target: 'the whole process group' },
  ] as const)(
    'exits with 0 within 1 s of a $signal to $target, and leaves nothing (S1)',
    async ({ signal, target }) => {
      const cluster = await ClusterProcess.start({
        within: ['setsid'],
        execArgv: ANNOUNCE_PROCESSES,
      });
      const pids = cluster.workerPids;
      expect(cluster.survivors()).toHaveLength(3);

      const { tookMs, ...exit } = await exitAfter(cluster, () =>
        process.kill(target === 'the primary' ? cluster.pid : -cluster.pid, signal),
      );

      expect(exit).toEqual({ code: 0, signal: null });
      expect(tookMs).toBeLessThan(1_000);
      expect(cluster.survivors()).toEqual([]);
      expect(pids.map(isReaped)).toEqual([true, true]);
      expect(cluster.all('worker-died')).toEqual([]);
      expect(cluster.all('worker-stopped')).toMatchObject([{ problem: null }, { problem: null }]);
      // Nor was anything started that had to be stopped again.
      expect(startedProcesses(cluster)).toHaveLength(3);
      expect(cluster.all('stopped')).toMatchObject([{ exitCode: 0 }]);
    },
  );

  const pidNamespace = [
    'unshare',
    ...(process.getuid!() === 0 ? [] : ['--user', '--map-root-user']),
    '--pid',
    '--fork',
    '--mount-proc',
    '--kill-child',
  ];

  // Some container hosts let nobody make namespaces.
  if (spawnSync(pidNamespace[0]!, [...pidNamespace.slice(1), 'true']).status === 0) {
    it('exits with 0 within 1 s of a SIGTERM as PID 1 of a container (S5)', async () => {
      const cluster = await ClusterProcess.start({
        options: { workers: 1 },
        within: pidNamespace,
      });
      const primary = childrenOf(cluster.pid)[0]!;
      expect(readFileSync(`/proc/${primary}/status`, 'utf8')).toMatch(/^NSpid:\t\d+\t1$/m);

      const { tookMs, ...exit } = await exitAfter(cluster, () => process.kill(primary, 'SIGTERM'));

      expect(exit).toEqual({ code: 0, signal: null });
      expect(tookMs).toBeLessThan(1_000);
      expect(cluster.survivors()).toEqual([]);
      expect(cluster.all('worker-died')).toEqual([]);
    });
  }
});

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
        env: { ...behaviour('announce-requests'), ...gates.env, TEST_ADAPTER: adapter },
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
        later.push((await request(cluster.url, '/hello', { timeoutMs: 10_000 })).outcome);
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
      // Who comes later is turned away, so that it can go elsewhere: not left waiting.
      expect(later).not.toContain('timeout');
      expect(later).toContain('refused');
      expect(later.lastIndexOf('ok')).toBeLessThan(later.indexOf('refused'));
      // At most who knocked at the very moment the socket was closed.
      expect(later.filter((each) => each === 'reset').length).toBeLessThanOrEqual(2);
    },
  );
});

describe('a further signal', () => {
  it.each([
    { first: 'SIGTERM', second: 'SIGTERM', code: 143 },
    { first: 'SIGTERM', second: 'SIGINT', code: 130 },
  ] as const)(
    'destroys connections, and exits with $code: $first, then $second (S4)',
    async ({ first, second, code }) => {
      const cluster = await ClusterProcess.start({ env: behaviour('announce-requests') });
      const slow = await begin(cluster, '/wait/20000');

      cluster.kill(first);
      await cluster.event('stopping', (line) => line['force'] === 'drain');
      const { tookMs, ...exit } = await exitAfter(cluster, () => cluster.kill(second));

      expect(exit).toEqual({ code, signal: null });
      expect(tookMs).toBeLessThan(2_000);
      expect((await slow.answer).outcome).toBe('reset');
      const cut = cluster
        .all('worker-stopped')
        .filter((line) => line['destroyedConnections'] === 1);
      expect(cut).toMatchObject([{ level: 'warn', abortedRequests: 1 }]);
      expect(cluster.survivors()).toEqual([]);
    },
  );

  it('that is the third kills even a worker that blocks its event loop (S4)', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('faults') });
    const blocked = request(cluster.url, '/faults/block', { timeoutMs: 30_000 });
    await cluster.until('a blocked worker', () => /^blocking \d+$/m.test(cluster.output));

    cluster.kill('SIGINT');
    await cluster.event('stopping', (line) => line['force'] === 'drain');
    cluster.kill('SIGINT');
    await cluster.event('stopping', (line) => line['force'] === 'destroy');
    const { tookMs, ...exit } = await exitAfter(cluster, () => cluster.kill('SIGINT'));

    expect(exit).toEqual({ code: 130, signal: null });
    expect(tookMs).toBeLessThan(1_000);
    expect((await blocked).outcome).toBe('reset');
    expect(cluster.survivors()).toEqual([]);
  });
});

describe('a signal to one worker', () => {
  it('SIGTERM drains and replaces it, and is no failure (S6)', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('announce-requests') });
    const [asked, other] = cluster.workerPids as [number, number];
    const slow = await begin(cluster, '/wait/2000', await agentOf(cluster.url, asked));
    const load = new Load(cluster.url, '/hello', { clients: 4 });

    process.kill(asked, 'SIGTERM');

    const draining = await cluster.event('worker-draining');
    expect(draining).toMatchObject({ level: 'info', worker: 0, pid: asked, cause: 'signal' });
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
    await load.served(20);
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
    const metrics = new MetricsPage((await request(cluster.url, '/metrics')).body);
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

describe('SIGUSR1', () => {
  it("to the primary opens Node's inspector, and is none of our signals (S9)", async () => {
    const cluster = await ClusterProcess.start({ options: { workers: 1 } });
    const pids = cluster.workerPids;

    cluster.kill('SIGUSR1');

    // Its port may be taken: that too is Node's answer.
    await cluster.until('the inspector', () =>
      /Debugger listening on|Starting inspector on/.test(cluster.output),
    );
    expect((await clusterReport(cluster.url)).ready).toBe(1);
    expect(cluster.workerPids).toEqual(pids);
    expect(cluster.all('reload-started')).toEqual([]);
    expect(cluster.all('stopping')).toEqual([]);
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  });
});
