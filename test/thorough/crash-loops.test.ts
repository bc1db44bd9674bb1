import { execFileSync } from 'node:child_process';
import { mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { runtimeBehaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { replacementOf } from '../support/crashes.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { getJson } from '../support/http-client.js';
import { openDescriptorsOf } from '../support/process-stats.js';
import { childrenOf } from '../support/processes.js';
import { scrape } from '../support/scrape.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

function limitDescriptors(pid: number, limits: string): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limits}`]);
}

describe('a crash loop', () => {
  it('at a cadence just above the stable time is found out, and is over once a worker lives', async () => {
    const broken = join(temporaryDirectory(), 'broken');
    writeFileSync(broken, '');
    // A message may be late by a part of it.
    const stableAfterMs = 1_500;
    const cluster = await ClusterProcess.start({
      options: {
        heartbeat: { intervalMs: 100 },
        restart: { stableAfterMs, maxFailures: 3 },
      },
      env: {
        ...runtimeBehaviour('crash-cadence'),
        TEST_BROKEN: broken,
        TEST_LIFE_MS: String(1.4 * stableAfterMs),
      },
    });

    await cluster.event('worker-restarting', (line) => line['degraded'] === true);

    expect(cluster.all('worker-restarting').map(({ slot, delayMs }) => [slot, delayMs])).toEqual([
      [1, 0],
      [1, 0],
      [1, 0],
    ]);
    const degraded = async () => {
      const report = await clusterReport(cluster.url);
      const page = await scrape(cluster.url);
      return {
        degraded: report.degraded,
        bySlot: ['0', '1'].map((worker) => page.sum('nestjs_cluster_worker_degraded', { worker })),
      };
    };
    expect(await degraded()).toEqual({ degraded: 1, bySlot: [0, 1] });
    rmSync(broken);
    await eventually('the end of the loop', degraded, (now) => now.degraded === 0);
    expect((await degraded()).bySlot).toEqual([0, 0]);
    expect(cluster.workerPids).toHaveLength(2);
  });
});

describe('a worker that cannot be started', () => {
  it('for want of descriptors is tried again until there are some, and the others serve', async () => {
    const cluster = await ClusterProcess.start({
      options: { heartbeat: { intervalMs: 100 }, restart: { maxBackoffMs: 300 } },
    });
    const [victim, other] = cluster.workerPids as [number, number];
    const before = openDescriptorsOf(cluster.pid);
    // No new descriptor has a number below it.
    limitDescriptors(cluster.pid, '3:');

    process.kill(victim, 'SIGKILL');

    await cluster.until('three tries', () => cluster.all('worker-died').length > 3);
    for (const line of cluster.all('worker-died').slice(1)) {
      expect(line).toMatchObject({ worker: 0, cause: 'boot' });
      expect(line.message).toContain('it could not be started');
      expect(line['error']).toMatchObject({ message: expect.stringContaining('EMFILE') as string });
    }
    expect((await getJson(cluster.url, '/whoami')).body.pid).toBe(other);
    limitDescriptors(cluster.pid, '20000:');
    const ready = await replacementOf(cluster, 0, victim);
    await cluster.until('both', () => cluster.workerPids.length === 2);
    expect(cluster.workerPids).toEqual([ready.pid, other]);
    expect(new Set(childrenOf(cluster.pid))).toEqual(new Set(cluster.workerPids));
    await eventually(
      'no more descriptors than before',
      () => openDescriptorsOf(cluster.pid),
      (now) => now <= before,
    );
    const { ready: readyNow } = await eventually(
      'both ready',
      () => clusterReport(cluster.url),
      (report) => report.ready === 2,
    );
    expect(readyNow).toBe(2);
  });

  it('for want of the working directory is tried again until it is there', async () => {
    const cwd = temporaryDirectory();
    const cluster = await ClusterProcess.start({
      options: { restart: { maxBackoffMs: 300 } },
      cwd,
    });
    const [victim, other] = cluster.workerPids as [number, number];
    rmdirSync(cwd);

    process.kill(victim, 'SIGKILL');

    await cluster.until('three tries', () => cluster.all('worker-died').length > 3);
    const [first, ...later] = cluster.all('worker-died').slice(1);
    expect(first!.message).toContain(`the working directory ${cwd} is not there`);
    for (const line of later) expect(line.message).toContain('the same error (Error)');
    for (const line of [first, ...later]) expect(line).toMatchObject({ worker: 0, cause: 'boot' });
    expect((await getJson(cluster.url, '/whoami')).body.pid).toBe(other);
    expect(cluster.all('failed')).toEqual([]);
    mkdirSync(cwd);
    const ready = await replacementOf(cluster, 0, victim);
    expect(cluster.workerPids).toEqual([ready.pid, other]);
  });
});
