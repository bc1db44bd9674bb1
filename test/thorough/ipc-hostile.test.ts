import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { clusterReport } from '../support/health.js';
import { request } from '../support/http-client.js';
import { agentOf } from '../support/keep-alive-agent.js';

afterEach(stopAll);

/** The most that a worker may add to the memory of the primary. */
const MAX_GROWTH_BYTES = 100 * 1024 * 1024;

/** The highest resident memory that a process has ever had. */
function peakBytes(pid: number): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!;
  return Number(kilobytes) * 1024;
}

function startHostile(): Promise<ClusterProcess> {
  return ClusterProcess.start({
    options: { hangTimeoutMs: 60_000 },
    env: behaviour('drain-hostile-channel'),
  });
}

/** Has worker 0 misuse what connects it to its primary. */
async function misuse(cluster: ClusterProcess, how: string): Promise<void> {
  const agent = await agentOf(cluster.url, cluster.workerPids[0]!);
  const { outcome, status } = await request(cluster.url, `/hostile/${how}`, {
    method: 'POST',
    agent,
    timeoutMs: 100_000,
  });
  agent.destroy();
  expect([how, outcome, status]).toEqual([how, 'bad-status', 201]);
}

/** It answers for the cluster, on every worker. */
async function expectServing(cluster: ClusterProcess): Promise<void> {
  for (const pid of cluster.workerPids) {
    const agent = await agentOf(cluster.url, pid);
    expect((await request(cluster.url, '/hello', { agent })).outcome).toBe('ok');
    expect((await request(cluster.url, '/metrics', { agent })).outcome).toBe('ok');
    agent.destroy();
  }
  await eventually(
    'a fresh picture of two ready workers',
    () => clusterReport(cluster.url),
    ({ ready, snapshotAgeMs }) => ready === 2 && snapshotAgeMs === undefined,
  );
}

async function expectEndsWell(cluster: ClusterProcess): Promise<void> {
  cluster.kill('SIGTERM');
  expect(await cluster.exited()).toEqual({ code: 0, signal: null });
}

describe('a worker that misuses its channel', () => {
  // The misuses in a row are sent to one cluster, one after the other.
  it.each([
    ['flood-of-broken', 'flood-of-listen-requests'],
    ['flood-of-warnings', 'huge-strings', 'unread-answers'],
  ])('by %s … neither ends nor fattens the primary', async (...ways) => {
    const cluster = await startHostile();
    const pids = cluster.workerPids;
    const before = peakBytes(cluster.pid);

    for (const how of ways) {
      await misuse(cluster, how);

      const grownBytes = peakBytes(cluster.pid) - before;
      expect(grownBytes < MAX_GROWTH_BYTES || `${how}: ${grownBytes}`).toBe(true);
      expect([how, cluster.workerPids]).toEqual([how, pids]);
      expect(cluster.output.length).toBeLessThan(1024 * 1024);
      await expectServing(cluster);
    }

    await expectEndsWell(cluster);
  });

  it('by bytes that are no message is replaced, and does not end the primary', async () => {
    const cluster = await startHostile();
    const how = 'no-json';
    const [hostile, other] = cluster.workerPids;
    const agent = await agentOf(cluster.url, hostile!);

    // Killed for it, perhaps before it can answer.
    await request(cluster.url, `/hostile/${how}`, { method: 'POST', agent });

    const died = await cluster.event('worker-died', ({ pid }) => pid === hostile);
    expect([how, died]).toMatchObject([how, { worker: 0, cause: 'crash' }]);
    await cluster.until('two workers again', () => cluster.workerPids.length === 2);
    expect(cluster.workerPids[1]).toBe(other);
    await expectServing(cluster);
    expect(cluster.all('worker-died')).toHaveLength(1);
    await expectEndsWell(cluster);
  });
});
