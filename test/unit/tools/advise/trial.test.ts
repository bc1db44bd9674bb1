import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ClusterRefusedError } from '../../../../src/contract/errors/index.js';
import { encodeBody } from '../../../../src/observe/exposition/metrics-body.js';
import { histogramColumns, type Row } from '../../../../src/observe/exposition/metric-family.js';
import type { ControlClient } from '../../../../src/tools/control/control-client.js';
import { tryInThread } from '../../../../src/tools/advise/trial.js';
import { trialLines } from '../../../../src/tools/advise/trial-report.js';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const METHOD = { name: 'Reports.build', route: 'GET /reports/:id', cpuBound: false, refusal: null };

/** Metrics with so many requests within 10 ms, 100 ms and 1 s, by route and status. */
function body(requests: Record<string, readonly number[]>): string {
  const series = new Map(
    Object.entries(requests).map(([key, [fast = 0, slow = 0, slowest = 0]]) => {
      const [route, status] = key.split(' ');
      const labels = `method="GET",route="${route}",status_code="${status}"`;
      const all = fast + slow + slowest;
      const row: Row = [fast, fast + slow, all, all, 0, all];
      return [labels, row] as const;
    }),
  );
  const name = 'x_http_request_duration_seconds';
  const columns = histogramColumns([0.01, 0.1, 1]);
  const family = { name, help: '', type: 'histogram', aggregator: 'sum', columns, series } as const;
  return encodeBody({ prefix: 'x_', families: [family] });
}

/** A window of 100 ms, of which one handler took the last. */
function windowOf(busyMs: number) {
  const frame = (functionName: string) => ({ functionName, url: 'node:x', lineNumber: 0 });
  const nodes = [
    { id: 1, callFrame: frame('(idle)') },
    { id: 2, callFrame: frame('work') },
  ];
  const samples = Array.from({ length: 101 }, (_, ms) => (ms < 100 - busyMs ? 1 : 2));
  return { nodes, samples, timeDeltas: samples.map((_, i) => (i === 0 ? 0 : 1_000)) };
}

/** A cluster whose worker 1 tries the method, once it was asked to. */
function fakeCluster({ desired = 2, method = METHOD as object | undefined, reason = null } = {}) {
  const posts: [path: string, body: unknown][] = [];
  let trial: string | undefined;
  let reads = 0;
  const state = {
    signals: new Set<AbortSignal>(),
    pid: 10,
    trial: () => trial,
    end: () => void (trial = undefined),
  };
  const client = {
    get: async (path: string) => {
      if (path === '/v1/status') {
        const workers = Array.from({ length: desired }, (_, slot) => ({
          slot,
          pid: slot === 0 ? state.pid : 10 + slot,
          state: 'ready',
          ...(slot === desired - 1 && trial !== undefined && { trial }),
        }));
        return { cluster: { desired, workers } };
      }
      const slot = Number(path.split('/')[3]);
      const isAfter = reads++ >= desired;
      const slow = slot === 1 ? [200] : [100, 100];
      return isAfter
        ? { body: body({ '/api/reports/:id 200': [0, 0, 10], '/light 200': slow, '/x 500': [2] }) }
        : { body: body({ '/light 200': [0] }) };
    },
    post: async (path: string, sent?: unknown, over?: AbortSignal) => {
      if (over !== undefined) state.signals.add(over);
      posts.push([path, sent]);
      if (path.includes('method-profile')) {
        const slot = path.split('/')[3];
        if (trial !== undefined) {
          await new Promise((resolve) => setTimeout(resolve, 1_000 * Number(path.split('=')[1])));
        }
        return {
          pid: Number(slot),
          list: { methods: method ? [method] : [], extents: [] },
          places: [],
          profile: windowOf(Number(slot) === desired - 1 ? 25 : 50),
        };
      }
      if (path.endsWith('/trial') && reason === null) trial = 'Reports.build';
      else trial = undefined;
      return { reason };
    },
  };
  const abort = new AbortController();
  const run = async (name = 'Reports.build', afterS = 0, happen = () => {}) => {
    const wait = async (ms: number) => {
      await new Promise((resolve) => setTimeout(resolve, ms));
      abort.signal.throwIfAborted();
    };
    const trying = tryInThread(client as unknown as ControlClient, name, 10, wait);
    const settled = trying.catch(() => {});
    await vi.advanceTimersByTimeAsync(afterS * 1_000);
    happen();
    await vi.advanceTimersByTimeAsync(20_000);
    await settled;
    return trying;
  };
  return { posts, run, state, abort };
}

it('compares the worker of the trial with the others, and puts it back', async () => {
  const { posts, run } = fakeCluster();

  const trial = await run();

  expect(trial).toEqual({
    method: 'Reports.build',
    slot: 1,
    seconds: 10,
    without: {
      workers: 1,
      busy: 0.5,
      ownP99Ms: expect.closeTo(991, 0),
      waitP99Ms: 49,
      requestsPerSecond: 21.2,
      errors: expect.closeTo(2 / 212),
    },
    with: {
      workers: 1,
      busy: 0.25,
      ownP99Ms: expect.closeTo(991, 0),
      waitP99Ms: 24,
      requestsPerSecond: 21.2,
      errors: expect.closeTo(2 / 212),
    },
  });
  expect(posts).toEqual([
    ['/v1/workers/1/method-profile?seconds=1', undefined],
    ['/v1/workers/1/trial', { method: 'Reports.build', seconds: 45 }],
    ['/v1/workers/0/method-profile?seconds=10', undefined],
    ['/v1/workers/1/method-profile?seconds=10', undefined],
    ['/v1/workers/1/restart', undefined],
  ]);
  expect(trialLines(trial)).toEqual([
    'worker=1 ran Reports.build in a thread for 10 s, and the other workers (1) on their event loops.',
    '',
    '                                        other workers  worker=1',
    'event loop busy, %                               50.0      25.0',
    'p99 of the wait for the event loop, ms           49.0      24.0',
    'p99 of its own requests, ms                     991.0     991.0',
    'requests a second                                21.2      21.2',
    'answered with 5xx, %                             0.94      0.94',
    '',
    '@CpuBound() on Reports.build helps the other requests. worker=1 has been replaced, and runs Reports.build on its event loop again.',
  ]);
});

it.each([
  ['a wait that stays', { waitP99Ms: 48 }, /would gain nothing for the other requests/],
  ['more errors', { waitP99Ms: 9, errors: 0.2 }, /more requests failed: see the log of worker=1/],
  ['no requests', { requestsPerSecond: 0 }, /no requests came/],
])('draws its conclusion from %s', async (_, differs, expected) => {
  const { run } = fakeCluster();
  const trial = await run();

  const lines = trialLines({ ...trial, with: { ...trial.with, ...differs } });

  expect(lines.at(-1)).toMatch(expected);
});

it.each([
  ['one worker', { desired: 1 }, 'Reports.build', /and 1 serves: scale to 2 or more/],
  ['no such method', {}, 'Report.build', /has the method Report.build; expected Reports.build/],
  ['a method that has it', { method: { ...METHOD, cpuBound: true } }, undefined, /already$/],
  ['a refusal', { method: { ...METHOD, refusal: 'takes @Res()' } }, undefined, /^takes @Res\(\)$/],
])('refuses %s, before anything is changed', async (_, cluster, name, message) => {
  const { run, posts } = fakeCluster(cluster);

  const refused = run(name);

  await expect(refused).rejects.toThrow(ClusterRefusedError);
  await expect(refused).rejects.toThrow(message);
  expect(posts).toHaveLength(1);
});

it('says why the worker did not start with the trial', async () => {
  const { run, posts } = fakeCluster({ reason: 'a thread cannot import it' as never });

  await expect(run()).rejects.toThrow('Reports.build cannot be tried: a thread cannot import it');
  expect(posts).toHaveLength(2);
});

it('ends with the worker of the trial, and leaves the worker that took its place alone', async () => {
  const { run, posts, state } = fakeCluster();

  const trying = run(undefined, 8, () => state.end());

  await expect(trying).rejects.toThrow(/the worker of the trial has ended or was replaced/);
  expect(posts.map(([path]) => path)).not.toContain('/v1/workers/1/restart');
});

it('puts the worker back when it is interrupted', async () => {
  const { run, posts, state, abort } = fakeCluster();

  const trying = run(undefined, 8, () => abort.abort());

  await expect(trying).rejects.toThrow(/abort/i);
  expect(posts.at(-1)).toEqual(['/v1/workers/1/restart', undefined]);
  expect([...state.signals].map(({ aborted }) => aborted)).toEqual([true]);
});

it('leaves out the requests of another worker that was replaced in the meantime', async () => {
  const { run, state } = fakeCluster();

  const trial = await run(undefined, 8, () => (state.pid = 99));

  expect([trial.without.requestsPerSecond, trial.with.requestsPerSecond]).toEqual([0, 21.2]);
});
