import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { clusterReport, type HealthBody } from '../support/health.js';
import { getJson, request } from '../support/http-client.js';
import { describeOnce } from '../support/once.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

afterEach(stopAll);

const OTHER_VERSION = pathToFileURL(
  join(import.meta.dirname, '../fixtures/preload/other-version.mjs'),
).href;

/** Never mistakes a stopped process of a test for a hung one. */
const PATIENT = 120_000;

/** Asks again until an answer took less: a machine that is busy elsewhere delays one, not each. */
async function answeredWithin<T>(ms: number, ask: () => Promise<T>, check: (answer: T) => void) {
  await eventually(
    `an answer within ${ms} ms`,
    async () => {
      const startedAt = performance.now();
      const answer = await ask();
      const tookMs = performance.now() - startedAt;
      check(answer);
      return tookMs;
    },
    (tookMs) => tookMs < ms,
  );
}

describe('the primary', () => {
  it('replaces a worker that closes the channel itself and goes on sending', async () => {
    const cluster = await ClusterProcess.start({
      env: behaviour('messages#disconnects'),
    });

    const { body } = await getJson<{ connected: boolean }>(cluster.url, '/disconnect');
    expect(body.connected).toBe(false);

    const died = await cluster.event('worker-died');
    await cluster.event(
      'worker-ready',
      ({ worker, pid }) => worker === died.worker && pid !== died.pid,
    );
    expect(died.cause).toBe('exit');
    expect(cluster.survivors()).not.toContain(died.pid);
    expect((await clusterReport(cluster.url)).ready).toBe(2);
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  });
});

it('a release with another version of the protocol is refused, and the cluster serves on', async () => {
  const broken = join(temporaryDirectory(), 'broken');
  const cluster = await ClusterProcess.start({
    options: { workers: 1 },
    env: { TEST_BROKEN: broken },
    execArgv: ['--import', OTHER_VERSION],
  });
  const pids = cluster.workerPids;

  writeFileSync(broken, '');
  cluster.kill('SIGHUP');

  // Long before its boot would time out.
  expect(await cluster.event('reload-ended')).toMatchObject({
    outcome: 'aborted',
    reason: expect.stringContaining('uses version 2 of the IPC protocol') as string,
  });
  expect(cluster.workerPids).toEqual(pids);
  expect((await request(cluster.url, '/hello')).outcome).toBe('ok');
});

describeOnce('while the primary does not answer', () => {
  it('/health tells the last known state and its age within 1 s', async () => {
    const cluster = await ClusterProcess.start({ options: { hangTimeoutMs: PATIENT } });
    const pids = cluster.workerPids;
    const { workers: booted } = await clusterReport(cluster.url);
    // By then each worker has learned from a heartbeat that the other is ready too.
    const { snapshotAgeMs: before } = await eventually(
      'a heartbeat after the last of them became ready',
      () => clusterReport(cluster.url),
      ({ workers }) =>
        workers.every(({ uptimeSeconds }, i) => uptimeSeconds > booted[i]!.uptimeSeconds + 3),
    );
    expect(before).toBeUndefined();

    cluster.kill('SIGSTOP');

    const ask = () => getJson<HealthBody>(cluster.url, '/health');
    await answeredWithin(1_000, ask, ({ status, body }) => {
      expect(status).toBe(200);
      expect(body.details.cluster).toMatchObject({ status: 'up', desired: 2, ready: 2 });
      expect(body.details.cluster.workers.map(({ pid }) => pid)).toEqual(pids);
      expect(body.details.cluster.snapshotAgeMs).toBeGreaterThan(0);
    });

    cluster.kill('SIGCONT');
    const { snapshotAgeMs } = await eventually(
      'a fresh snapshot',
      () => clusterReport(cluster.url),
      (report) => report.snapshotAgeMs === undefined,
    );
    expect(snapshotAgeMs).toBeUndefined();
    expect(cluster.workerPids).toEqual(pids);
  });
});
