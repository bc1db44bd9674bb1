import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { IS_FIRST_RUN, itOnce } from '../support/once.js';
import { scrape, scrapeAll } from '../support/scrape.js';
import { describeWith } from '../support/system-packages.js';

afterEach(stopAll);

const HANG_TIMEOUT_MS = 3_500;

function limitDescriptors(pid: number, limits: string): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limits}`]);
}

/** Opens connections that send nothing. */
async function silentConnections(url: string, count: number): Promise<net.Socket[]> {
  const { port, hostname } = new URL(url);
  const sockets: net.Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  for (let i = 0; i < count; i += 1) {
    const socket = net.connect(Number(port), hostname);
    // One that is turned away is closed, or reset.
    sockets.push(socket.on('error', () => {}).resume());
    await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  }
  return sockets;
}

describe('1,300 silent connections to a worker that may open 1,024 files', () => {
  it('are turned away beyond its limit, and the cluster lives, answers and serves again', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, hangTimeoutMs: HANG_TIMEOUT_MS },
      within: ['prlimit', '--nofile=1024:1024'],
    });
    const pids = cluster.workerPids;
    const kept = await agentOf(cluster.url, pids[0]!);

    const silent = await silentConnections(cluster.url, 1_300);

    const turnedAway = () =>
      cluster.all('warning').filter(({ message }) => message.includes('turns connections away'));
    await cluster.until('a warning', () => turnedAway().length > 0);
    // The connection that was there goes on, and tells that its primary hears of the worker.
    const page = await eventually(
      'all of them counted',
      () => scrape(cluster.url, { agent: kept }),
      (each) =>
        each.sum('nestjs_cluster_worker_dropped_connections_total') > 500 &&
        each.sum('nestjs_cluster_worker_heartbeat_age_seconds') < 1 &&
        each.sum('nestjs_cluster_snapshot_age_seconds') === 0,
    );
    expect(page.sum('nestjs_cluster_worker_up')).toBe(1);
    for (const socket of silent) socket.destroy();
    await eventually(
      'a new connection served after them',
      async () => (await request(cluster.url, '/hello')).outcome,
      (outcome) => outcome === 'ok',
    );
    const { workers } = await eventually(
      'the silent ones gone',
      () => clusterReport(cluster.url),
      (report) => report.workers[0]!.openConnections! < 10,
    );
    expect(workers.map(({ pid }) => pid)).toEqual(pids);
    expect(turnedAway()).toMatchObject([
      { message: expect.stringContaining('768 are open, and it may open 1024 files') as string },
    ]);
    expect(cluster.all('worker-died')).toEqual([]);
  });
});

describe('a process that has no descriptor left', () => {
  it('is a worker that serves on and is not taken for hung', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, hangTimeoutMs: HANG_TIMEOUT_MS },
    });
    const [pid] = cluster.workerPids as [number];
    const agent = await agentOf(cluster.url, pid);
    limitDescriptors(pid, '3:');

    const before = (await scrape(cluster.url, { agent })).sum(
      'nestjs_cluster_worker_uptime_seconds',
    );
    const page = await eventually(
      'more than its heartbeat takes to judge',
      () => scrape(cluster.url, { agent }),
      (each) =>
        each.sum('nestjs_cluster_worker_uptime_seconds') > before + (1.5 * HANG_TIMEOUT_MS) / 1_000,
    );
    expect(page.sum('nestjs_cluster_worker_up')).toBe(1);
    expect(page.sum('nestjs_cluster_worker_resident_memory_bytes')).toBeGreaterThan(0);
    expect(cluster.workerPids).toEqual([pid]);
  });

  itOnce(
    'is a primary that finds hung workers all the same, and replaces them when it can',
    async () => {
      const cluster = await ClusterProcess.start({
        options: { hangTimeoutMs: HANG_TIMEOUT_MS },
      });
      const [victim] = cluster.workerPids as [number, number];
      limitDescriptors(cluster.pid, '3:');

      process.kill(victim, 'SIGSTOP');

      const died = await cluster.event('worker-died', (line) => line.pid === victim);
      expect(died).toMatchObject({ cause: 'hang' });
      await cluster.until('two tries', () => cluster.all('worker-died').length > 2);
      limitDescriptors(cluster.pid, '20000:');
      await cluster.until('another worker', () => cluster.workerPids.length === 2);
      expect(cluster.all('failed')).toEqual([]);
    },
  );
});

if (IS_FIRST_RUN) {
  describeWith(['unshare'], 'a machine that hides /proc', () => {
    it('has a cluster that starts, knows its workers, limits their memory, reloads and reports', async () => {
      const cluster = await ClusterProcess.start({
        options: {
          memory: { hardLimitBytes: 350_000_000 },
        },
        env: behaviour('memory-routes'),
        within: 'unshare --mount sh -c'
          .split(' ')
          .concat('mount -t tmpfs none /proc && exec "$0" "$@"'),
      });
      const page = await scrapeAll(cluster.url);
      expect(page.sum('nestjs_cluster_worker_up')).toBe(2);
      for (const bytes of page.values('nestjs_cluster_worker_resident_memory_bytes')) {
        expect(bytes).toBeGreaterThan(20_000_000);
      }
      cluster.kill('SIGHUP');
      expect(await cluster.event('reload-ended')).toMatchObject({ outcome: 'completed' });

      await cluster.until('two workers', () => cluster.workerPids.length === 2);
      const [greedy] = cluster.workerPids as [number];
      const agent = await agentOf(cluster.url, greedy);
      await request(cluster.url, '/grow/300', { agent });
      const died = await cluster.event('worker-died');
      expect(died).toMatchObject({ pid: greedy, cause: 'memory' });
    });
  });
}
