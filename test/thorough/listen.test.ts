import { existsSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { ONE_ADAPTER, OTHER_ADAPTER } from '../support/adapters.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { began, drains } from '../support/drain.js';
import { clusterReport } from '../support/health.js';
import { request } from '../support/http-client.js';
import { agentOf, keepAliveAgent } from '../support/keep-alive-agent.js';
import { Gates } from '../support/offload.js';
import { itOnce } from '../support/once.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const withoutServerHandle = [
  '--import',
  pathToFileURL(join(import.meta.dirname, '../fixtures/preload/no-server-handle.mjs')).href,
];

afterEach(stopAll);

/** Fails unless each of its workers answers at the one address. */
async function expectAllToServe(cluster: ClusterProcess): Promise<void> {
  expect(cluster.workerPids).toHaveLength(2);
  for (const pid of cluster.workerPids) await agentOf(cluster.url, pid);
}

async function expectCleanStop(cluster: ClusterProcess): Promise<void> {
  const died = cluster.all('worker-died').length;
  cluster.kill('SIGTERM');
  expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  expect(cluster.survivors()).toEqual([]);
  expect(cluster.all('worker-died')).toHaveLength(died);
}

const hasIPv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ family, internal }) => family === 'IPv6' && internal),
);

describe.each([{ workers: 2 }, { workers: 0 }])('without a host, workers $workers', (options) => {
  it('listens on all interfaces', async () => {
    const cluster = new ClusterProcess({
      env: { TEST_OPTIONS: JSON.stringify({ port: 0, ...options }) },
    });
    await cluster.event('listening');
    const { port } = new URL(cluster.url);

    expect((await request(`http://127.0.0.1:${port}`, '/hello')).outcome).toBe('ok');
    if (hasIPv6) expect((await request(`http://[::1]:${port}`, '/hello')).outcome).toBe('ok');
  });
});

describe.each([
  { adapter: ONE_ADAPTER, workers: 2 },
  { adapter: OTHER_ADAPTER, workers: 0 },
])('a unix socket on $adapter, workers $workers', ({ adapter, workers }) => {
  it('serves, and its file is gone after the stop', async () => {
    const path = join(temporaryDirectory(), 'app.sock');
    const cluster = await ClusterProcess.start({
      options: { path, workers },
      env: { TEST_ADAPTER: adapter },
    });

    expect(cluster.url).toBe(`unix:${path}`);
    expect((await request(cluster.url, '/hello')).body).toBe('Hello World!');
    if (workers > 0) await expectAllToServe(cluster);

    await expectCleanStop(cluster);
    expect(existsSync(path)).toBe(false);
  });
});

describe('standalone', () => {
  it('serves in one process, and answers what is in flight before it exits with 0', async () => {
    const gates = new Gates();
    const cluster = await ClusterProcess.start({
      options: { workers: 0 },
      env: { ...behaviour('streams#announced'), ...gates.env, TEST_ADAPTER: ONE_ADAPTER },
    });
    expect(cluster.survivors()).toEqual([cluster.pid]);
    for (const path of ['/hello', '/health', '/health/live', '/health/ready', '/metrics']) {
      expect([path, (await request(cluster.url, path)).status]).toEqual([path, 200]);
    }
    const { workers, ...report } = await clusterReport(cluster.url);
    expect(report).toMatchObject({ status: 'up', desired: 1, ready: 1, degraded: 0 });
    expect(workers).toMatchObject([
      { slot: 0, pid: cluster.pid, state: 'ready', restarts: 0, requestsTotal: 5 },
    ]);
    const slow = request(cluster.url, '/gate/slow', { agent: keepAliveAgent() });
    await began(cluster, '/gate/slow');

    cluster.kill('SIGTERM');
    await drains(cluster.pid);
    gates.open('slow');

    const { outcome, headers } = await slow;
    expect(outcome).toBe('ok');
    expect(headers.connection).toBe('close');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.all('stopped')).toMatchObject([{ exitCode: 0 }]);
  });

  itOnce('destroys connections on a second signal, and exits with 143', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 0 },
      env: behaviour('streams#announced'),
    });
    const slow = request(cluster.url, '/wait/60000');
    await began(cluster, '/wait/60000');

    cluster.kill('SIGTERM');
    await cluster.event('stopping', (line) => line['force'] === 'drain');
    cluster.kill('SIGTERM');

    expect(await cluster.exited()).toEqual({ code: 143, signal: null });
    expect((await slow).outcome).toBe('reset');
  });
});

describe('on a Node without net._createServerHandle', () => {
  it('all workers serve one port', async () => {
    const cluster = await ClusterProcess.start({
      env: { TEST_ADAPTER: OTHER_ADAPTER },
      execArgv: withoutServerHandle,
    });
    expect(cluster.output).toContain('hid net._createServerHandle');
    await expectAllToServe(cluster);

    process.kill(cluster.workerPids[0]!, 'SIGTERM');
    await cluster.until('a replacement', () => cluster.all('worker-ready').length === 3);
    await cluster.event('worker-stopped');

    await expectAllToServe(cluster);
    await expectCleanStop(cluster);
  });
});
