import { expect } from 'vitest';
import type { ClusterProcess } from '../../support/cluster-process.js';
import { eventually } from '../../support/eventually.js';
import { getJson, request } from '../../support/http-client.js';

/** An app of a project that runs as a cluster of two; `where` its @CpuBound() method runs. */
export async function expectServing(
  cluster: ClusterProcess,
  where: 'thread' | 'event loop',
): Promise<void> {
  await cluster.event('started');

  expect((await request(cluster.url, '/')).body).toBe('Hello World!');
  // On a machine that is at work elsewhere the first thread may take longer than a call waits.
  const report = await eventually(
    'a thread',
    () => request(cluster.url, '/report'),
    (answer) => answer.status !== 503,
  );
  expect([report.status, report.body]).toEqual([200, where]);
  const { status, body } = await getJson(cluster.url, '/health');
  expect([status, body.details.cluster.ready]).toEqual([200, 2]);
}

/** It ends when it is asked to, and leaves nothing. */
export async function expectEnding(cluster: ClusterProcess): Promise<void> {
  cluster.kill('SIGTERM');
  expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  expect(cluster.survivors()).toEqual([]);
}
