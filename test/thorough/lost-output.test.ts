import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, constants, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type StartOptions, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { freePorts } from '../support/free-ports.js';
import { getJson, request } from '../support/http-client.js';
import { MetricsPage } from '../support/metrics-page.js';
import { offloadOptions } from '../support/offload.js';
import { itOnce } from '../support/once.js';
import { anyPage, scrape } from '../support/scrape.js';
import { temporaryDirectory } from '../support/temporary-directory.js';

const DROPPED = 'nestjs_cluster_log_lines_dropped_total';
const DROPPED_BY_PRIMARY = 'nestjs_cluster_primary_log_lines_dropped_total';

const isRoot = process.getuid!() === 0;

afterEach(stopAll);

/** A cluster whose standard streams both go where a test cannot read them. */
async function writingTo(
  target: string,
  { options, env, within = [] }: Pick<StartOptions, 'options' | 'env' | 'within'> = {},
): Promise<{ cluster: ClusterProcess; url: string }> {
  const port = await freePorts(1);
  const cluster = new ClusterProcess({
    options: { workers: 1, ...options, port },
    env: { ...behaviour('writes-lines'), ...env },
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

/** Mounts a file system of 64 KiB. */
function smallDisk(): string {
  const path = temporaryDirectory();
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', path]);
  onTestFinished(() => void spawnSync('umount', ['--lazy', path]));
  return path;
}

/** Fills the file system to its last byte. */
function fill(disk: string): string {
  const path = join(disk, 'filler');
  const descriptor = openSync(path, 'w');
  spawnSync('dd', ['if=/dev/zero', 'bs=1k', 'count=1024'], {
    stdio: ['ignore', descriptor, 'ignore'],
  });
  closeSync(descriptor);
  return path;
}

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

  itOnce('does not end a process without a primary', async () => {
    const { cluster, url } = await writingTo('/dev/full', {
      options: { workers: 0 },
      env: NO_THREADS,
    });

    await request(url, '/lines/out/5');

    // It may answer before it has said where it listens.
    const page = await eventually(
      'six lost lines',
      () => scrape(url),
      (each) => each.sum(DROPPED) >= 6,
    );
    expect(page.values(DROPPED)).toEqual([6]);
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
  });
});

describe.runIf(isRoot)('a disk that is full', () => {
  it('for a while loses what is written meanwhile, counts it and says so when there is room again', async () => {
    const disk = smallDisk();
    const log = join(disk, 'log');
    const { cluster, url } = await writingTo(log, {
      env: offloadOptions({ threads: 1 }),
    });
    const { pid } = (await getJson<{ pid: number }>(url, '/lines/out/1')).body;
    await request(url, '/lines/thread/1');
    await eventually(
      'both lines, and the last one of the start',
      () => readFileSync(log, 'utf8'),
      (text) => /^thread 0/m.test(text) && /^out 0/m.test(text) && text.includes('listening on'),
    );

    const filler = fill(disk);
    const before = readFileSync(log, 'utf8');
    await request(url, '/lines/out/100');
    await request(url, '/lines/thread/100');
    const { kept, dropped } = await eventually(
      'each of the 200 lines, kept or lost',
      async () => ({
        dropped: (await scrape(url)).sum(DROPPED),
        kept: readFileSync(log, 'utf8').slice(before.length).split('\n').length - 1,
      }),
      (lines) => lines.kept + lines.dropped >= 200,
    );
    expect(dropped).toBeGreaterThan(100);
    expect(kept + dropped).toBe(200);

    rmSync(filler);
    const told = await eventually(
      'a word of it',
      () => readFileSync(log, 'utf8'),
      (text) => text.includes('could not be written'),
    );
    const [line, ...more] = told
      .split('\n')
      .filter((each) => each.includes('could not be written'));
    expect(more).toEqual([]);
    expect(JSON.parse(line!)).toMatchObject({
      level: 'warn',
      event: 'warning',
      message: expect.stringMatching(
        new RegExp(
          `worker=0 gen=0 pid=${pid} ${dropped} log lines could not be written \\(ENOSPC\\)`,
        ),
      ),
      worker: 0,
      pid,
    });

    // All of it writes again, also the threads, and nobody has been replaced.
    await request(url, '/lines/out/2');
    await request(url, '/lines/thread/2');
    await eventually(
      'new lines',
      () => readFileSync(log, 'utf8').slice(told.length),
      (text) => /^out 1 /m.test(text) && /^thread 1 /m.test(text),
    );
    expect((await getJson<{ pid: number }>(url, '/whoami')).body.pid).toBe(pid);
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual({ code: 0, signal: null });
    expect(readFileSync(log, 'utf8')).toContain('"event":"stopped"');
  });
});

describe('a terminal that is closed', () => {
  /** Runs in a terminal of its own; `session` = away from it as a job that outlives it. */
  async function inTerminal(
    leader: string,
  ): Promise<{ url: string; pids: () => number[]; close: () => void; cluster: ClusterProcess }> {
    const port = await freePorts(1);
    const cluster = new ClusterProcess({
      options: { workers: 1, port },
      env: behaviour('writes-lines'),
      within: ['sh', '-c', `exec script --quiet --command "${leader} $*" /dev/null`, 'sh'],
    });
    const url = `http://127.0.0.1:${port}`;
    await cluster.event('listening');
    return { cluster, url, pids: () => cluster.survivors(), close: () => cluster.kill('SIGKILL') };
  }

  it('does not end what was to outlive it (EIO)', async () => {
    // A session of its own: it gets no SIGHUP.
    const { url, close } = await inTerminal('exec setsid --wait');
    const { pid } = (await getJson<{ pid: number }>(url, '/lines/out/1')).body;

    close();
    const page = await eventually(
      'lost lines of the worker',
      async () => {
        await request(url, '/lines/out/1');
        return scrape(url);
      },
      (each) => each.sum(DROPPED) > 0,
    );
    expect(page.sum(DROPPED)).toBeGreaterThan(0);
    process.kill(pid, 'SIGKILL');
    await eventually(
      'another worker, and a primary that had to say so',
      () => pageOrNone(url),
      (each) =>
        each.sum(DROPPED_BY_PRIMARY) > 0 && each.sum('nestjs_cluster_worker_restarts_total') === 1,
    );
  });

  itOnce('ends what ran in it, in good order', async () => {
    const { cluster, url, close } = await inTerminal('exec');
    await request(url, '/lines/out/1');

    close();
    await cluster.gone();
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
