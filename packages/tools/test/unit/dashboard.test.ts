import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ClusterStatus } from '../../src/cluster.js';
import {
  changesBetween,
  ClusterFeed,
  MAX_ROWS,
  RequestRate,
} from '../../src/dashboard/cluster-feed.js';
import { DashboardServer } from '../../src/dashboard/dashboard-server.js';
import { Metrics, metricsUrlOf } from '../../src/dashboard/metrics.js';
import { ToolError } from '../../src/output.js';
import { request } from '../../../../test/support/http-client.js';
import { clientOf, statusOf, workerOf } from '../support/status.js';

const ends: (() => void)[] = [];

afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A dashboard of a cluster that a test plays. */
async function serve({ readOnly = false, answer = async (): Promise<unknown> => ({}) } = {}) {
  const cluster = { status: (): ClusterStatus => statusOf([{}]) };
  const asked: unknown[][] = [];
  const client = clientOf({
    status: () => cluster.status(),
    post: (...args) => (asked.push(args), answer()),
  });
  const feed = new ClusterFeed({ client, reconnect: async () => client, readOnly });
  const server = new DashboardServer(feed, readOnly);
  const url = await server.listen(0);
  const token = new URL(url).hash.replace('#token=', '');
  ends.push(() => server.close());
  const ask = (method: string, path: string, headers = {}, body: unknown = {}) =>
    request(url, path, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...headers },
      ...(method === 'POST' && { body: JSON.stringify(body) }),
    });
  return { cluster, feed, asked, url, token, ask };
}

const API = [
  ...['/api/state', '/api/state?since=0', '/api/reload', '/none'].map((path) => ['GET', path]),
  ...['reload', 'scale', 'restart', 'stop', 'advise'].map((name) => ['POST', `/api/${name}`]),
] as [string, string][];
const ROUTES = [...API, ['GET', '/'], ['GET', '/main.js']] as [string, string][];

describe('every route', () => {
  it.each(['rebound.example', 'localhost.example:80', '127.0.0.1.example'])(
    'is refused to another host: %j',
    async (host) => {
      const { ask, asked } = await serve();

      const all = ROUTES.map(([method, path]) => ask(method, path, { Host: host }));
      expect(new Set((await Promise.all(all)).map(({ status }) => status))).toEqual(new Set([421]));
      expect(asked).toEqual([]);
    },
  );

  it('allows only its own files, and no frame', async () => {
    const { ask } = await serve();

    for (const [method, path] of ROUTES) {
      const { headers } = await ask(method, path);
      expect(headers['content-security-policy'], path).toBe(
        "default-src 'self'; frame-ancestors 'none'",
      );
    }
  });
});

describe('the token', () => {
  it('has 32 random bytes, in the part of the address that no browser sends', async () => {
    const { url, token } = await serve();

    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=[\w-]{43}$/);
    expect((await serve()).token).not.toBe(token);
  });

  it.each([
    ['no', () => ''],
    ['a wrong', () => `Bearer ${'A'.repeat(43)}`],
    ['an empty', () => 'Bearer '],
    ['a shortened', (token: string) => `Bearer ${token.slice(0, -1)}`],
    ['another kind of', (token: string) => `Basic ${token}`],
  ])('is needed to read and to change: %s token is refused', async (_, authorization) => {
    const { ask, asked, token, feed } = await serve();
    await feed.ask();

    for (const [method, path] of API) {
      const headers = { Authorization: authorization(token), 'Content-Type': 'application/json' };
      const answer = await ask(method, path, headers);
      expect(answer, path).toMatchObject({
        status: 401,
        headers: { 'www-authenticate': 'Bearer' },
      });
      expect(JSON.parse(answer.body)).toEqual({
        error: { message: 'Open the URL printed by the dashboard command.' },
      });
    }
    expect(asked).toEqual([]);
  });
});

describe('a change', () => {
  it.each([
    [
      'reload',
      {},
      ['/v1/reload'],
      { outcome: 'aborted', reason: 'no boot' },
      'reload aborted: no boot',
    ],
    [
      'restart',
      { slot: 1 },
      ['/v1/workers/1/restart'],
      { outcome: 'completed', reason: null },
      'restart of worker 1 completed',
    ],
    ['scale', { workers: 4 }, ['/v1/scale', { workers: 4 }], { ready: 4 }, 'scaled to 4 workers'],
    ['stop', {}, ['/v1/stop'], { exitCode: 0 }, 'stopped with exit code 0'],
  ])('%s is asked of the cluster', async (name, body, request, result, text) => {
    const { ask, asked } = await serve({ answer: async () => result });

    const { body: answer } = await ask('POST', `/api/${name}`, {}, body);
    expect(JSON.parse(answer)).toMatchObject({ done: name !== 'reload', text });
    expect(asked).toEqual([request]);
  });

  it.each(['reload', 'scale', 'restart', 'stop'])(
    '%s is refused with --read-only',
    async (name) => {
      const { ask, asked } = await serve({ readOnly: true });

      const body = { workers: 2, slot: 0 };
      expect((await ask('POST', `/api/${name}`, {}, body)).body).toContain('--read-only');
      expect(asked).toEqual([]);
    },
  );

  it('names no other route of the cluster', async () => {
    const { ask, asked } = await serve();
    await ask('POST', '/api/restart', {}, { slot: '../../stop?' });

    expect((await ask('GET', '/api/reload')).status).toBe(404);
    expect(asked).toEqual([['/v1/workers/NaN/restart']]);
  });

  it('is refused as the cluster refuses it, without control characters', async () => {
    const { ask } = await serve({
      answer: async () => {
        throw new ToolError('a reload is \u001b[31munder way');
      },
    });
    const { status, body } = await ask('POST', '/api/reload');

    expect(status).toBe(409);
    expect(JSON.parse(body)).toMatchObject({ error: { message: 'a reload is under way' } });
  });
});

it('the state has what happened since it was last asked for, and a silent primary', async () => {
  const { feed, ask, cluster } = await serve();
  const next = async (since: number) => {
    await feed.ask();
    const { body } = await ask('GET', `/api/state?since=${since}`);
    return JSON.parse(body) as ReturnType<ClusterFeed['state']>;
  };
  await feed.ask();
  const first = await next(0);
  expect(first).toMatchObject({ readOnly: false, problem: null, status: { name: 'shop' } });
  expect(first.rows).toHaveLength(2);

  cluster.status = () => {
    throw new ToolError('no answer within 1000 ms');
  };
  const silent = await next(first.rows[1]!.at);
  expect(silent).toMatchObject({ problem: 'no answer within 1000 ms', status: { name: 'shop' } });
  expect(silent.rows).toHaveLength(1);

  cluster.status = () => statusOf([{}], { reason: 'again' });
  const back = await next(silent.rows[0]!.at);
  expect(back).toMatchObject({ problem: null, log: [{ text: 'the cluster is up: again' }] });
});

it('the history has 15 minutes, with a gap if nothing was heard', async () => {
  const { feed, cluster } = await serve();
  await feed.ask();
  cluster.status = () => {
    throw new ToolError('no answer');
  };
  await feed.ask();
  expect(feed.state(0).rows.map(({ ready }) => ready)).toEqual([1, undefined]);

  for (let i = 0; i < MAX_ROWS; i += 1) await feed.ask();
  expect(feed.state(0).rows).toHaveLength(MAX_ROWS);
});

it('the rate counts the requests of a slot once, none from before, and goes on with a new primary', () => {
  const rate = new RequestRate();
  const next = (at: number, ...counts: (readonly [slot: number, requests: number])[]) =>
    rate.next(
      at,
      counts.map(([slot, requestsTotal]) => workerOf({ slot, requestsTotal })),
    );

  expect([
    next(1, [0, 100], [1, 1_000]),
    next(2, [0, 150], [1, 1_010]),
    next(3, [0, 150], [0, 150], [1, 1_020], [2, 5_000]),
    ...[4, 5, 6, 7, 8].map((at) => next(at, [0, at])),
  ]).toEqual([NaN, 60, 35, 0, 0, 0, 1, 1]);
});

it('an event is the start, the state or the end of a worker, or the state of the cluster', () => {
  const told = (before: ClusterStatus, now: ClusterStatus) =>
    changesBetween(before, now, '').map(({ level, text }) => `${level} ${text}`);
  const exit = { code: null, signal: null, at: '' };
  const killed = { ...exit, cause: 'killed' as const };
  const restarted = { pid: 2, state: 'starting' as const, restarts: 1, lastExit: killed };
  const reloaded = { pid: 2, generation: 2, lastExit: { ...exit, cause: 'reload' as const } };

  expect(told(statusOf([{}]), statusOf([restarted]))).toEqual([
    'error worker=0 gen=1 pid=1 ended (cause=killed)',
    'info worker=0 gen=1 pid=2 is starting',
  ]);
  expect(told(statusOf([{}]), statusOf([reloaded]))).toEqual([
    'info worker=0 gen=1 pid=1 ended (cause=reload)',
    'info worker=0 gen=2 pid=2 is ready',
  ]);
  expect(told(statusOf([{}]), statusOf([{}], { status: 'down', reason: 'no worker' }))).toEqual([
    'warn the cluster is down: no worker',
  ]);
});

describe('the latency', () => {
  const page = (route: string, ...counts: number[]) =>
    ['0.1', '1', '+Inf']
      .map(
        (le, i) =>
          `http_request_duration_seconds_bucket{route="${route}",le="${le}"} ${counts[i]}\n`,
      )
      .join('');

  /** The metrics after these answers, 5 s apart. */
  async function after(...answers: (string | number)[]) {
    const metrics = new Metrics('http://127.0.0.1:3000/metrics');
    const fetching = vi.spyOn(globalThis, 'fetch');
    const clock = vi.spyOn(performance, 'now');
    onTestFinished(() => {
      fetching.mockRestore();
      clock.mockRestore();
    });
    for (const [index, answer] of answers.entries()) {
      const status = typeof answer === 'number' ? answer : 200;
      fetching.mockResolvedValueOnce(new Response(String(answer), { status }));
      clock.mockReturnValue(index * 5_000);
      await metrics.read(statusOf([{}]));
    }
    return metrics;
  }

  it('is that of the requests between two pages, without those for metrics', async () => {
    const { readings } = await after(
      page('/a', 1_000, 1_000, 1_000) + page('/metrics', 1, 1, 1),
      page('/a', 1_050, 1_100, 1_100) + page('/metrics', 1, 1, 9_999),
    );

    // 50 of 100 within 0.1 s, all within 1 s: linear within a bucket, as in Prometheus.
    expect(readings.p50Ms).toBeCloseTo(100);
    expect(readings.p95Ms).toBeCloseTo(100 + 900 * 0.9);
  });

  it.each([
    ['one page', [page('/', 9, 9, 9)]],
    ['no requests', [page('/', 9, 9, 9), page('/', 9, 9, 9)]],
    ['counts that begin again', [page('/', 9, 9, 9), page('/', 1, 1, 1)]],
    ['an error', [page('/', 0, 0, 0), 404]],
  ])('is not known from %s', async (_, answers) => {
    expect((await after(...answers)).readings.p99Ms ?? NaN).toBeNaN();
  });

  it('comes with the calls in threads', async () => {
    const offload = (ended: number) =>
      `${page('/', 1, 1, 1)}nestjs_cluster_offload_queue_size{worker="0"} 3
nestjs_cluster_offload_queue_size{worker="1"} 4
nestjs_cluster_offload_tasks_total{task="a",outcome="ok"} ${ended}\n`;

    expect((await after(offload(10), offload(60))).readings).toMatchObject({
      queued: 7,
      offloaded: 10,
    });
  });

  it.each([
    [{ port: 3000, host: '::1', admin: null }, 'http://[::1]:3000/metrics'],
    [{ port: 3000, admin: { port: 9000, host: '0.0.0.0' } }, 'http://127.0.0.1:9000/metrics'],
    [{ port: 0, admin: null }, undefined],
    [{ admin: null }, undefined],
  ])('of an app with %j is read from %s', (options, url) => {
    expect(metricsUrlOf(options)).toBe(url);
  });
});
