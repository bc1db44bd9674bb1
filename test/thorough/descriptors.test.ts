import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';
import { describeOnce } from '../support/once.js';
import { scrape } from '../support/scrape.js';

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
    // One that is rejected is closed, or reset.
    sockets.push(socket.on('error', () => {}).resume());
    await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  }
  return sockets;
}

describe('1,300 silent connections to a worker that may open 1,024 files', () => {
  it('are rejected beyond its limit, and the cluster lives, answers and serves again', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, hangTimeoutMs: HANG_TIMEOUT_MS },
      within: ['prlimit', '--nofile=1024:1024'],
    });
    const pids = cluster.workerPids;
    const kept = await agentOf(cluster.url, pids[0]!);

    const silent = await silentConnections(cluster.url, 1_300);

    const turnedAway = () =>
      cluster.all('warning').filter(({ message }) => message.includes('connections are refused'));
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
      {
        message: expect.stringContaining(
          '768 are open, and the process is limited to 1024 open files',
        ) as string,
      },
    ]);
    expect(cluster.all('worker-died')).toEqual([]);
  });
});

describeOnce('a process that has no descriptor left', () => {
  it('is a primary that finds hung workers all the same, and replaces them when it can', async () => {
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
  });
});
