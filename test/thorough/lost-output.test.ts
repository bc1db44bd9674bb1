import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { getJson, request } from '../support/http-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import { anyPage, scrape } from '../support/scrape.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const DROPPED = 'nestjs_cluster_log_lines_dropped_total';
const DROPPED_BY_PRIMARY = 'nestjs_cluster_primary_log_lines_dropped_total';

afterEach(stopAll);

/** A cluster whose standard streams both go where a test cannot read them. */
async function writingTo(
  target: string,
  { options, env, within = [] }: Pick<StartOptions, 'options' | 'env' | 'within'> = {},
): Promise<{ cluster: ClusterProcess; url: string }> {
  const port = await freePorts(1);
  const cluster = new ClusterProcess({
    options: { workers: 1, ...options, port },
    env: { ...behaviour('worker-lines#writes'), ...env },
    within: [...within, 'sh', '-c', 'exec "$@" >> "$0" 2>&1', target],
  });
  const url = `http://127.0.0.1:${port}`;
  await Promise.race([
    eventually('an answer', async () => (await request(url, '/hello')).status),
    cluster.exit.then((exit) => {
      throw new Error(`it ended: ${JSON.stringify(exit)}`);
    }),
  ]);
  return { cluster, url };
}

/** The metrics page, or an empty page: the worker that was asked may have been killed. */
const pageOrNone = (url: string) => anyPage(url).catch(() => new MetricsPage(''));

/** For tests that count log lines: on a busy machine slow threads would add a warning. */
const NO_THREADS = { CLUSTER_OFFLOAD: 'inline' };

describe('a device that takes nothing', () => {
  it('as standard output ends neither the primary nor a worker, and each lost line is counted', async () => {
    const { cluster, url } = await writingTo('/dev/full', { env: NO_THREADS });

    const { pid } = (await getJson<{ pid: number }>(url, '/lines/out/30')).body;
    await request(url, '/lines/console/12');

    const page = await eventually(
      '42 lines of the worker, and four of the primary',
      () => scrape(url),
      (each) => each.sum(DROPPED, { worker: '0' }) >= 42 && each.sum(DROPPED_BY_PRIMARY) >= 4,
    );
    expect(page.values(DROPPED, { worker: '0' })).toEqual([42]);
    // The four lines: the start, the ready worker, the address, and that all workers are ready.
    // They are written once a thread has loaded everything.
    expect(page.values(DROPPED_BY_PRIMARY)).toEqual([4]);
    expect((await getJson<{ pid: number }>(url, '/lines/out/1')).body.pid).toBe(pid);

    // The lines that a dead worker had lost are still counted.
    process.kill(pid, 'SIGKILL');
    const after = await eventually(
      'another worker',
      () => pageOrNone(url),
      (each) => each.sum('nestjs_cluster_worker_restarts_total') === 1,
    );
    expect(after.sum(DROPPED)).toBeGreaterThanOrEqual(42);
    expect(after.sum(DROPPED_BY_PRIMARY)).toBeGreaterThan(4);

    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(cluster.survivors()).toEqual([]);
  });
});

describe('a pipe that nobody reads', () => {
  it(
    'holds up neither the primary nor a worker, also once workers have ended',
    { timeout: 120_000 },
    async () => {
      const path = join(temporaryDirectory(), 'pipe');
      execFileSync('mkfifo', [path]);
      // Somebody has it open for reading, and does not.
      const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
      onTestFinished(() => closeSync(reader));
      const { cluster, url } = await writingTo(path, {
        options: {
          workers: 2,
          // A delayed worker answers no request. A slow boot must not get a worker killed.
          hangTimeoutMs: 30_000,
        },
      });
      const pids = async () =>
        (
          await getJson<{ details: { cluster: { workers: { pid: number; state: string }[] } } }>(
            url,
            '/health',
          )
        ).body.details.cluster.workers
          .filter(({ state }) => state === 'ready')
          .map(({ pid }) => pid);
      const first = await eventually('two workers', pids, ({ length }) => length === 2);
      // A worker that ends leaves the pipe it shares as it found it, which is blocking.
      cluster.kill('SIGHUP');
      const second = await eventually(
        'two others',
        pids,
        (now) => now.length === 2 && !now.some((pid) => first.includes(pid)),
      );
      await eventually(
        'an end',
        () => cluster.survivors().filter((pid) => first.includes(pid)),
        ({ length }) => length === 0,
      );

      expect((await request(url, '/lines/out/5000')).outcome).toBe('ok');
      process.kill(second[0]!, 'SIGKILL');
      await eventually(
        'a third',
        pids,
        (now) => now.length === 2 && now.includes(second[1]!) && !now.includes(second[0]!),
      );
      for (let i = 0; i < 8; i++) expect((await request(url, '/hello')).outcome).toBe('ok');

      cluster.kill('SIGTERM');
      expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    },
  );
});
