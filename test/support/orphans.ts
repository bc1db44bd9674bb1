import type { ClusterOptions } from 'nestjs-cluster';
import { expect } from 'vitest';
import { behaviour } from './behaviour.js';
import { ClusterProcess } from './cluster-process.js';
import { hang } from './hang.js';
import { RawClient } from './raw-client.js';

/**
 * Kills the primary of workers of which one is idle, one blocked, one in a loop, and one blocked in
 * its boot.
 */
export async function orphans(
  hangTimeoutMs: ClusterOptions['hangTimeoutMs'],
): Promise<ClusterProcess> {
  const cluster = new ClusterProcess({
    options: { workers: 4, hangTimeoutMs },
    env: { ...behaviour('hang-routes'), TEST_BLOCKED_BOOT: '3' },
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
