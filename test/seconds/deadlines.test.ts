import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { ClusterOptions } from 'nestjs-cluster';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type Exit, stopAll } from '../support/cluster-process.js';
import { began, NEVER_MS } from '../support/drain.js';
import { request } from '../support/http-client.js';
import { childrenOf, isReaped } from '../support/processes.js';
import { ANNOUNCE_PROCESSES, startedProcesses } from '../support/started-processes.js';
import { SERVICE_RESTART, openDeafWebSocket } from '../support/web-socket-client.js';
import { hang } from '../support/hang.js';
import { RawClient } from '../support/raw-client.js';

/**
 * Kills the primary of workers of which one is idle, one blocked, one in a loop, and one blocked in
 * its boot.
 */
async function orphans(hangTimeoutMs: ClusterOptions['hangTimeoutMs']): Promise<ClusterProcess> {
  const cluster = new ClusterProcess({
    options: { workers: 4, hangTimeoutMs },
    env: { ...behaviour('crashes#hangs'), TEST_BLOCKED_BOOT: '3' },
  });
  await cluster.until('three workers', () => cluster.all('worker-ready').length === 3);
  await cluster.until('a blocked boot', () => cluster.output.includes('boot blocked'));
  const looping = await hang(cluster, await RawClient.open(cluster.url), 'loop');
  const waiting = await hang(cluster, await RawClient.open(cluster.url), 'wait');
  expect(cluster.workerPids).toEqual(expect.arrayContaining([looping, waiting]));
  expect(cluster.survivors()).toHaveLength(5);
  cluster.kill('SIGKILL');
  return cluster;
}

// Promises in seconds of how something ends; that it ends well, under whatever load, is in the
// tests of the other folders.

afterEach(stopAll);

/** Sends a signal and resolves with the exit, and how long it took. */
async function exitAfter(
  cluster: ClusterProcess,
  send: () => void,
): Promise<Exit & { tookMs: number }> {
  const sentAt = performance.now();
  send();
  const exit = await cluster.exited();
  return { ...exit, tookMs: performance.now() - sentAt };
}

describe('an idle cluster', () => {
  it.each([
    { signal: 'SIGTERM', target: 'the primary' },
    // As Ctrl-C does.
    { signal: 'SIGINT', target: 'the whole process group' },
  ] as const)(
    'exits with 0 within 1 s of a $signal to $target, and leaves nothing',
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
    it('exits with 0 within 1 s of a SIGTERM as PID 1 of a container', async () => {
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

describe('a further signal', () => {
  it.each([
    { first: 'SIGTERM', second: 'SIGTERM', code: 143 },
    { first: 'SIGTERM', second: 'SIGINT', code: 130 },
  ] as const)(
    'destroys connections, and exits with $code: $first, then $second',
    async ({ first, second, code }) => {
      const cluster = await ClusterProcess.start({ env: behaviour('streams#announced') });
      const slow = request(cluster.url, '/wait/60000');
      await began(cluster, '/wait/60000');

      cluster.kill(first);
      await cluster.event('stopping', (line) => line['force'] === 'drain');
      const { tookMs, ...exit } = await exitAfter(cluster, () => cluster.kill(second));

      expect(exit).toEqual({ code, signal: null });
      expect(tookMs).toBeLessThan(2_000);
      expect((await slow).outcome).toBe('reset');
      const cut = cluster
        .all('worker-stopped')
        .filter((line) => line['destroyedConnections'] === 1);
      expect(cut).toMatchObject([{ level: 'warn', abortedRequests: 1 }]);
      expect(cluster.survivors()).toEqual([]);
    },
  );

  it('that is the third kills even a worker that blocks its event loop', async () => {
    const cluster = await ClusterProcess.start({ env: behaviour('crashes#hangs') });
    const blocked = request(cluster.url, '/hang/wait');
    await cluster.until('a blocked worker', () => /^hanging wait \d+$/m.test(cluster.output));

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

describe('a signal during boot', () => {
  it.each([
    { ms: 60, target: 'primary' },
    { ms: 450, target: 'process group' },
  ])(
    'ends everything within 2 s when the $target gets SIGTERM $ms ms after the start',
    async ({ ms, target }) => {
      const cluster = new ClusterProcess({ within: ['setsid'] });
      await delay(ms);

      process.kill(target === 'primary' ? cluster.pid : -cluster.pid, 'SIGTERM');

      const { code, signal } = await cluster.exited(2_000);
      // Before its handlers are there, the signal itself ends the primary.
      if (signal === null) expect(code).toBe(0);
      else expect(signal).toBe('SIGTERM');
      await cluster.gone(1_000);
    },
  );

  it('exits with 0 within 2 s when it comes while a worker is stuck in its boot', async () => {
    const cluster = new ClusterProcess({
      env: { ...behaviour('crashes#blocksBoot'), TEST_SLOTS: '1' },
    });
    await cluster.event('listening');
    await cluster.until('a blocked worker', () => cluster.output.includes('blocking the boot'));

    cluster.kill('SIGTERM');

    expect(await cluster.exited(2_000)).toEqual({ code: 0, signal: null });
    expect(cluster.survivors()).toEqual([]);
  });
});

describe('a drain', () => {
  it('ends within a second of its deadline', async () => {
    const drainTimeoutMs = 1_000;
    const cluster = await ClusterProcess.start({
      options: { shutdown: { drainTimeoutMs } },
      env: behaviour('streams#everything'),
    });
    await Promise.all(Array.from({ length: 20 }, () => openDeafWebSocket(cluster.url)));

    const { tookMs, ...exit } = await exitAfter(cluster, () => cluster.kill('SIGTERM'));

    expect(exit).toEqual({ code: 0, signal: null });
    expect(tookMs).toBeGreaterThanOrEqual(drainTimeoutMs);
    expect(tookMs).toBeLessThan(drainTimeoutMs + 1_000);
  });
});

describe('workers whose primary is killed', () => {
  it.each([{ hangTimeoutMs: 10_000 }, { hangTimeoutMs: false as const }])(
    'are gone within 3 s: idle, blocked, in a loop, and blocked in their boot, hangTimeoutMs $hangTimeoutMs',
    async ({ hangTimeoutMs }) => {
      const cluster = await orphans(hangTimeoutMs);

      await cluster.gone(3_000);
    },
  );

  it('are gone within 3 s in a drain, however long it had been given, and with WebSockets that do not listen', async () => {
    const cluster = await ClusterProcess.start({
      options: { shutdown: { drainTimeoutMs: NEVER_MS } },
      env: behaviour('streams#everything'),
    });
    const deaf = await openDeafWebSocket(cluster.url);
    cluster.kill('SIGTERM');
    await deaf.until(new RegExp(SERVICE_RESTART));

    cluster.kill('SIGKILL');

    // A second more than the 3 s: to find processes takes time too.
    await cluster.gone(4_000);
  });
});
