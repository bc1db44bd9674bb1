import { execFileSync } from 'node:child_process';
import { mkdirSync, rmdirSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { replacementOf } from '../support/crashes.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { getJson } from '../support/http-client.js';
import { childrenOf, openDescriptorsOf } from '../support/processes.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

function limitDescriptors(pid: number, limits: string): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${limits}`]);
}

describe('a worker that cannot be started', () => {
  it('for want of descriptors is tried again until there are some, and the others serve', async () => {
    const cluster = await ClusterProcess.start();
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
