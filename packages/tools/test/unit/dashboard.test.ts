import { afterEach, describe, expect, it } from 'vitest';
import type { ClusterStatus } from '../../src/cluster.js';
import { changesBetween } from '../../src/dashboard/changes-between.js';
import { ClusterFeed } from '../../src/dashboard/cluster-feed.js';
import { DashboardServer } from '../../src/dashboard/dashboard-server.js';
import { COLUMNS, History, MAX_ROWS } from '../../src/dashboard/history.js';
import { MetricsSource, metricsUrlOf, NOTHING } from '../../src/dashboard/metrics-source.js';
import { ToolError } from '../../src/output.js';
import { eventually } from '../../../../test/support/eventually.js';
import { request } from '../../../../test/support/http-client.js';
import { RawClient } from '../../../../test/support/raw-client.js';
import { clientOf, statusOf } from '../support/status.js';

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
  const feed = new ClusterFeed({ connect: async () => client, readOnly, metrics: false });
  const server = new DashboardServer(feed, readOnly);
  const link = new URL(await server.listen(0));
  const end = new AbortController();
  void feed.run(end.signal);
  ends.push(() => {
    end.abort();
    server.close();
  });
  await eventually(
    'a cluster',
    () => feed.client,
    (found) => found !== undefined,
  );
  const { origin: url, host } = link;
  const ask = (method: string, path: string, headers = {}, body: unknown = {}) =>
    request(url, path, {
      method,
      headers: { ...(method === 'POST' && { 'Content-Type': 'application/json' }), ...headers },
      ...(method === 'POST' && { body: JSON.stringify(body) }),
    });
  const token = link.hash.slice('#token='.length);
  const exchange = (given: unknown) => ask('POST', '/api/session', {}, { token: given });
  /** The headers of a browser that has opened the link. */
  const open = async () => {
    const { headers } = await exchange(token);
    const cookie = headers['set-cookie']![0]!.split(';')[0]!;
    return { Cookie: cookie, 'X-Dashboard-Token': token, Origin: url };
  };
  return { cluster, asked, url, host, link, token, ask, exchange, open };
}

describe('the link', () => {
  it('has its token in the fragment, and gives a cookie that no script reads', async () => {
    const { link, token, exchange } = await serve();

    expect(link.pathname + link.search).toBe('/');
    expect(token).toMatch(/^[\w-]{43}$/);
    expect((await exchange(token)).headers['set-cookie']).toEqual([
      expect.stringMatching(
        /^nestjs-cluster-\d+=[\w-]{43}; Path=\/api; HttpOnly; SameSite=Strict$/,
      ),
    ]);
  });

  it.each(['', 'x', null, { length: 43 }])('opens nothing with %j', async (token) => {
    const { exchange } = await serve();

    expect((await exchange(token)).status).toBe(403);
  });
});

const ROUTES = [
  ...['/', '/main.js', '/api/session', '/api/events', '/none'].map((path) => ['GET', path]),
  ...['session', 'reload', 'scale', 'restart', 'stop', 'advise'].map((name) => [
    'POST',
    `/api/${name}`,
  ]),
] as [string, string][];

describe('every route', () => {
  it.each([
    [421, { Host: 'rebound.example' }],
    [421, { Host: '127.0.0.1:1' }],
    [403, { Origin: 'http://evil.example' }],
    [403, { Origin: 'null' }],
    [403, { 'Sec-Fetch-Site': 'cross-site' }],
    [403, { 'Sec-Fetch-Site': 'same-site' }],
  ])('answers %i to %j, even with the cookie and the token', async (status, headers) => {
    const { ask, open, asked } = await serve();
    const known = await open();

    const statuses = await Promise.all(
      ROUTES.map(
        async ([method, path]) => (await ask(method, path, { ...known, ...headers })).status,
      ),
    );
    expect(new Set(statuses)).toEqual(new Set([status]));
    expect(asked).toEqual([]);
  });

  it('allows only its own files, in every answer', async () => {
    const { ask } = await serve();

    for (const [method, path] of ROUTES) {
      const { headers } = await ask(method, path);
      expect(headers['content-security-policy'], path).toMatch(
        /^default-src 'self';.*frame-ancestors 'none'/,
      );
      expect(headers['content-security-policy']).not.toContain('unsafe');
      expect(headers['x-content-type-options']).toBe('nosniff');
    }
  });

  it('shows nothing of the cluster without the cookie', async () => {
    const { ask, open } = await serve();
    const { Cookie } = await open();
    const get = async (cookie?: string) =>
      (await ask('GET', '/api/session', cookie === undefined ? {} : { Cookie: cookie })).status;

    expect([await get(), await get(`${Cookie}x`), await get(Cookie.replace(/\d+=/, '1='))]).toEqual(
      [401, 401, 401],
    );
    expect(await get(`a=b; ${Cookie}`)).toBe(200);
    expect((await ask('GET', '/api/events')).status).toBe(401);
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
    const { ask, open, asked } = await serve({ answer: async () => result });

    const { body: answer } = await ask('POST', `/api/${name}`, await open(), body);
    expect(JSON.parse(answer)).toMatchObject({ done: name !== 'reload', text });
    expect(asked).toEqual([request]);
  });

  it('needs the token of the page besides the cookie, a POST and JSON', async () => {
    const { ask, open, asked } = await serve();
    const { 'X-Dashboard-Token': token, ...cookie } = await open();
    const all = { ...cookie, 'X-Dashboard-Token': token };
    const status = async (method: string, headers: object) =>
      (await ask(method, '/api/reload', headers)).status;

    expect([
      await status('POST', cookie),
      await status('POST', { ...all, 'X-Dashboard-Token': 'x' }),
      await status('POST', { ...all, 'Content-Type': 'text/plain' }),
      await status('GET', all),
    ]).toEqual([403, 403, 415, 404]);
    expect(asked).toEqual([]);
  });

  it.each(['reload', 'scale', 'restart', 'stop'])(
    '%s is refused with --read-only',
    async (name) => {
      const { ask, open, asked } = await serve({ readOnly: true });

      const body = { workers: 2, slot: 0 };
      expect((await ask('POST', `/api/${name}`, await open(), body)).body).toContain('--read-only');
      expect(asked).toEqual([]);
    },
  );

  it.each([
    ['scale', { workers: '4' }, 400],
    ['scale', { workers: 0 }, 400],
    ['scale', null, 400],
    ['scale', JSON.parse('{"__proto__":{"workers":4}}'), 400],
    ['restart', { slot: '../../stop' }, 400],
    ['scale', { x: 'x'.repeat(5_000) }, 413],
  ])('%s takes no body %j', async (name, body, status) => {
    const { ask, open, asked } = await serve();

    expect((await ask('POST', `/api/${name}`, await open(), body)).status).toBe(status);
    expect(asked).toEqual([]);
  });

  it('is refused as the cluster refuses it, without control characters', async () => {
    const { ask, open } = await serve({
      answer: async () => {
        throw new ToolError('a reload is \u001b[31munder way');
      },
    });
    const { status, body } = await ask('POST', '/api/reload', await open());

    expect(status).toBe(409);
    expect(JSON.parse(body)).toMatchObject({ error: { message: 'a reload is under way' } });
  });
});

it('the stream has the history and then what happens, and goes on after a silent primary', async () => {
  const { open, host, url, cluster } = await serve();
  const { Cookie } = await open();
  const raw = await RawClient.open(url);
  ends.push(() => raw.destroy());
  raw.write(`GET /api/events HTTP/1.1\r\nHost: ${host}\r\nCookie: ${Cookie}\r\n\r\n`);
  const says = (part: string) =>
    eventually(
      part,
      () => raw.text,
      (text) => text.includes(part),
    );
  await says('event: history');
  await says('"name":"shop"');

  cluster.status = () => {
    throw new ToolError('no answer within 1000 ms');
  };
  await says('{"state":"gone","message":"no answer within 1000 ms"}');
  cluster.status = () => statusOf([{}], { reason: '\n\nevent: forged\ndata: {}' });
  await says('{"state":"connected","message":null}');
  await says('event: log');
  expect(raw.text).not.toMatch(/^event: forged/m);
});

describe('the history', () => {
  function historyAt() {
    const clock = { ms: 1_000_000 };
    const history = new History(() => clock.ms);
    const add = (seconds: number, ...counts: (readonly [slot: number, requests: number])[]) => {
      clock.ms += seconds * 1_000;
      const workers = counts.map(([slot, requestsTotal]) => ({ slot, requestsTotal }));
      history.add(statusOf(workers), NOTHING);
    };
    const column = (name: (typeof COLUMNS)[number]) =>
      history.rows.map((row) => row[COLUMNS.indexOf(name)]);
    return { history, add, column };
  }

  it('keeps 15 minutes', () => {
    const { history, add } = historyAt();
    for (let i = 0; i < 2 * MAX_ROWS; i += 1) add(1, [0, i]);

    expect(history.rows).toHaveLength(MAX_ROWS);
  });

  it('counts the requests of a slot once, none from before, and begins again with a primary', () => {
    const { history, add, column } = historyAt();
    add(1, [0, 100]);
    add(1, [0, 150], [1, 1_000]);
    add(0.5, [0, 150], [0, 150], [1, 1_010]);
    history.restart();
    add(1, [0, 3]);
    add(1, [0, 5]);

    expect(column('requests')).toEqual([null, 50, 40, null, 2]);
  });

  it('has a gap if nothing was heard, and ascending times', () => {
    const { add, column } = historyAt();
    add(1, [0, 1]);
    add(60, [0, 1]);
    add(-30, [0, 1]);

    expect(column('ready')).toEqual([1, null, 1, 1]);
    expect(column('at')).toEqual(column('at').toSorted((a, b) => a! - b!));
  });
});

it('an event is the start, the state or the end of a worker, or the state of the cluster', () => {
  const told = (before: ClusterStatus, now: ClusterStatus) =>
    changesBetween(before, now, '').map(({ level, text }) => `${level} ${text}`);
  const restarted = { pid: 2, state: 'starting', restarts: 1, lastExit: { cause: 'killed' } };
  const reloaded = { pid: 2, generation: 2, lastExit: { cause: 'reload' } };

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
  const URL = 'http://127.0.0.1:3000/metrics';
  const page = (route: string, ...counts: number[]) =>
    ['0.1', '1', '+Inf']
      .map(
        (le, i) =>
          `http_request_duration_seconds_bucket{route="${route}",le="${le}"} ${counts[i]}\n`,
      )
      .join('');

  /** The state after the source has read these answers, 5 s apart. */
  async function after(...answers: (string | number)[]) {
    let at = 0;
    const ask = async () => {
      const answer = answers[at]!;
      at += 1;
      return new Response(String(answer), { status: typeof answer === 'number' ? answer : 200 });
    };
    const source = new MetricsSource(
      () => URL,
      ask,
      () => at * 5_000,
    );
    for (const _ of answers) await source.read();
    return source;
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
    expect((await after(...answers)).readings.p99Ms).toBeNull();
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
