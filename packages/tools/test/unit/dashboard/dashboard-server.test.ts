import { afterEach, describe, expect, it, vi } from 'vitest';
import { ClusterFeed } from '../../../../src/tools/dashboard/cluster-feed.js';
import { DashboardServer } from '../../../../src/tools/dashboard/dashboard-server.js';
import { PAGE_PATHS } from '../../../../src/tools/dashboard/page-files.js';
import {
  ClusterRefusedError,
  ClusterUnreachableError,
} from '../../../../src/contract/errors/index.js';
import { eventually } from '../../../support/eventually.js';
import { request } from '../../../support/http-client.js';
import { RawClient } from '../../../support/raw-client.js';
import { FakeControlClient, STATUS } from '../../support/fake-control-client.js';

const JSON_TYPE = { 'Content-Type': 'application/json' };

const ROUTES: readonly (readonly [string, string])[] = [
  ...PAGE_PATHS.map((path) => ['GET', path] as const),
  ['GET', '/api/session'],
  ['GET', '/api/events'],
  ...['session', 'reload', 'scale', 'restart', 'stop'].map(
    (name) => ['POST', `/api/${name}`] as const,
  ),
  ['GET', '/none'],
];

const ends: (() => void)[] = [];

afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A dashboard, and a browser that has not opened its link yet. */
async function serve({ readOnly = false } = {}) {
  const client = new FakeControlClient();
  const feed = new ClusterFeed({ connect: async () => client, readOnly, metrics: false });
  const server = new DashboardServer(feed, readOnly);
  await server.listen(0);
  const end = new AbortController();
  const running = feed.run(end.signal);
  ends.push(() => {
    end.abort();
    server.close();
    void running;
  });
  await eventually(
    'a cluster',
    () => feed.client,
    (found) => found !== undefined,
  );
  const link = () => new URL(server.newLink());
  const { origin: url, host } = link();
  const ask = (
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body: unknown = {},
  ) =>
    request(url, path, {
      method,
      headers: { ...(method === 'POST' && JSON_TYPE), ...headers },
      ...(method === 'POST' && { body: JSON.stringify(body) }),
    });
  const exchange = (token: string) => ask('POST', '/api/session', {}, { token });
  /** The headers of a browser that has opened a link. */
  const open = async () => {
    const { body, headers } = await exchange(tokenOf(link()));
    const { token } = JSON.parse(body) as { token: string };
    const cookie = headers['set-cookie']![0]!.split(';')[0]!;
    return { Cookie: cookie, 'X-Dashboard-Token': token, Origin: url };
  };
  return { client, feed, url, host, link, ask, exchange, open };
}

function tokenOf(link: URL): string {
  return link.hash.slice('#token='.length);
}

describe('the link of the dashboard', () => {
  it('opens it once, and gives a cookie that no script reads', async () => {
    const { link, exchange } = await serve();
    const token = tokenOf(link());

    const first = await exchange(token);
    const second = await exchange(token);

    expect(first.status).toBe(200);
    expect(first.headers['set-cookie']).toEqual([
      expect.stringMatching(
        /^nestjs-cluster-\d+=[\w-]{43}; Path=\/api; HttpOnly; SameSite=Strict$/,
      ),
    ]);
    expect(second.status).toBe(403);
    expect(second.headers['set-cookie']).toBeUndefined();
  });

  it('opens nothing with another token, or with that of a link before it', async () => {
    const { link, exchange } = await serve();
    const old = tokenOf(link());
    const last = tokenOf(link());

    expect((await exchange('')).status).toBe(403);
    expect((await exchange(`${last}x`)).status).toBe(403);
    expect((await exchange(old)).status).toBe(403);
    expect((await exchange(last)).status).toBe(200);
  });

  it.each([null, 1, [], { length: 43 }])('takes no %j for a token', async (token) => {
    const { exchange } = await serve();

    expect((await exchange(token as never)).status).toBe(403);
  });

  it('sends its token to no server: it is in the fragment', async () => {
    const { link } = await serve();
    const { pathname, search, hash } = link();

    expect(pathname + search).toBe('/');
    expect(hash).toMatch(/^#token=[\w-]{43}$/);
  });
});

describe('every route of the dashboard', () => {
  it('refuses another host, another origin and another site, also of who may', async () => {
    const { ask, open, host, url, client } = await serve();
    const known = await open();
    const foreign: [number, Record<string, string>][] = [
      [421, { Host: 'rebound.example' }],
      [421, { Host: `rebound.example:${new URL(url).port}` }],
      [421, { Host: '127.0.0.1:1' }],
      [403, { Origin: 'http://evil.example' }],
      [403, { Origin: 'null' }],
      [403, { Origin: 'http://127.0.0.1:1' }],
      [403, { Origin: `https://${host}` }],
      [403, { 'Sec-Fetch-Site': 'cross-site' }],
      [403, { 'Sec-Fetch-Site': 'same-site' }],
    ];

    const wrong: unknown[] = [];
    for (const [method, path] of ROUTES) {
      for (const [status, headers] of foreign) {
        const answer = await ask(method, path, { ...known, ...headers });
        if (answer.status !== status) wrong.push([method, path, headers, answer.status]);
      }
    }

    expect(wrong).toEqual([]);
    expect(client.post).not.toHaveBeenCalled();
  });

  it('refuses the same of an upgrade, and upgrades nothing', async () => {
    const { url, host, open } = await serve();
    const { Cookie } = await open();
    const upgrade = async (headers: string) => {
      const raw = await RawClient.open(url);
      raw.write(
        `GET /api/session HTTP/1.1\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n${headers}\r\n\r\n`,
      );
      await raw.ended;
      return raw.text.split('\r\n')[0];
    };

    expect(await upgrade(`Host: rebound.example\r\nCookie: ${Cookie}`)).toContain(' 421 ');
    expect(await upgrade(`Host: ${host}\r\nOrigin: http://evil.example`)).toContain(' 403 ');
    expect(await upgrade(`Host: ${host}`)).toContain(' 401 ');
    expect(await upgrade(`Host: ${host}\r\nCookie: ${Cookie}`)).toContain(' 200 ');
  });

  it('allows its own files alone, whatever the answer is', async () => {
    const { ask } = await serve();

    for (const [method, path] of [...ROUTES, ['PUT', '/'] as const]) {
      const { headers } = await ask(method, path);
      expect(headers['content-security-policy'], path).toContain("default-src 'self';");
      expect(headers['content-security-policy']).not.toContain('unsafe');
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'");
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  it('shows nothing of the cluster without the cookie', async () => {
    const { ask, open } = await serve();
    const { Cookie } = await open();
    const inside = ROUTES.filter(([, path]) => /^\/api\/(?!session)/.test(path));

    for (const [method, path] of inside) {
      expect((await ask(method, path)).status, path).toBe(401);
      const other = Cookie.replace(/\d+=/, '1=');
      expect((await ask(method, path, { Cookie: other })).status, path).toBe(401);
      expect((await ask(method, path, { Cookie: `${Cookie}x` })).status, path).toBe(401);
    }
    expect((await ask('GET', '/api/session', { Cookie: `a=b; ${Cookie}` })).status).toBe(200);
  });

  it.each([
    '/../package.json',
    '/..%2fpackage.json',
    '//evil.example/',
    '/vendor/',
    '/constructor',
  ])('has no file %s', async (path) => {
    const { ask } = await serve();

    expect((await ask('GET', path)).status).toBe(404);
  });
});

describe('a change', () => {
  it('is asked of the cluster, and its outcome told', async () => {
    const { ask, open, client } = await serve();
    const known = await open();
    vi.mocked(client.post)
      .mockResolvedValueOnce({ outcome: 'completed', generation: 2, reason: null })
      .mockResolvedValueOnce({ outcome: 'aborted', generation: 3, reason: 'no boot' })
      .mockResolvedValueOnce({ from: 2, workers: 4, ready: 4 })
      .mockResolvedValueOnce({ outcome: 'completed', slot: 1, reason: null })
      .mockResolvedValueOnce({ exitCode: 0 });
    const outcome = async (name: string, body = {}) =>
      JSON.parse((await ask('POST', `/api/${name}`, known, body)).body) as unknown;

    expect(await outcome('reload')).toMatchObject({ done: true });
    expect(await outcome('reload')).toMatchObject({
      done: false,
      text: expect.stringContaining('no boot') as string,
    });
    const text = 'scaled from 2 to 4 workers';
    expect(await outcome('scale', { workers: 4 })).toMatchObject({ done: true, text });
    expect(await outcome('restart', { slot: 1 })).toMatchObject({ done: true });
    expect(await outcome('stop')).toMatchObject({ done: true });
    expect(vi.mocked(client.post).mock.calls).toEqual([
      ['/v1/reload'],
      ['/v1/reload'],
      ['/v1/scale', { workers: 4 }],
      ['/v1/workers/1/restart'],
      ['/v1/stop'],
    ]);
  });

  it('needs the token of the page besides the cookie, a POST and JSON', async () => {
    const { ask, open, client } = await serve();
    const { 'X-Dashboard-Token': token, ...cookie } = await open();
    const all = { ...cookie, 'X-Dashboard-Token': token };

    expect((await ask('POST', '/api/reload', cookie)).status).toBe(403);
    expect((await ask('POST', '/api/reload', { ...cookie, 'X-Dashboard-Token': 'x' })).status).toBe(
      403,
    );
    expect(
      (await ask('POST', '/api/reload', { ...all, 'Content-Type': 'text/plain' })).status,
    ).toBe(415);
    expect((await ask('GET', '/api/reload', all)).status).toBe(405);
    expect(client.post).not.toHaveBeenCalled();
  });

  it('is refused with --read-only, also with every token', async () => {
    const { ask, open, client } = await serve({ readOnly: true });
    const known = await open();

    for (const name of ['reload', 'scale', 'restart', 'stop']) {
      const { status, body } = await ask('POST', `/api/${name}`, known, { workers: 2, slot: 0 });
      expect([status, body], name).toEqual([403, expect.stringContaining('--read-only')]);
    }
    expect(client.post).not.toHaveBeenCalled();
  });

  it.each([{}, { workers: '4' }, { workers: 0 }, { workers: 1.5 }, { workers: 1e9 }, [], null, 7])(
    'does not scale to %j',
    async (body) => {
      const { ask, open, client } = await serve();

      expect((await ask('POST', '/api/scale', await open(), body)).status).toBe(400);
      expect(client.post).not.toHaveBeenCalled();
    },
  );

  it('takes no prototype for a body, and no path for a slot', async () => {
    const { url, ask, open, client } = await serve();
    const known = await open();
    const polluted = await request(url, '/api/scale', {
      method: 'POST',
      headers: { ...JSON_TYPE, ...known },
      body: '{"__proto__":{"workers":4}}',
    });

    expect(polluted.status).toBe(400);
    expect((await ask('POST', '/api/restart', known, { slot: '../../stop' })).status).toBe(400);
    expect(client.post).not.toHaveBeenCalled();
  });

  it('is refused as the cluster refuses it, without control characters', async () => {
    const { ask, open, client } = await serve();
    const known = await open();
    vi.mocked(client.post)
      .mockRejectedValueOnce(new ClusterRefusedError('a reload is \u001b[31munder way'))
      .mockRejectedValueOnce(new ClusterUnreachableError('shop', 'it is blocked'));

    const refused = await ask('POST', '/api/reload', known);
    const silent = await ask('POST', '/api/reload', known);

    expect(refused.status).toBe(409);
    expect(JSON.parse(refused.body)).toMatchObject({
      error: { message: 'a reload is under way' },
    });
    expect(silent.status).toBe(502);
  });

  it('has a body of 64 KB at most', async () => {
    const { ask, open } = await serve();

    const { status } = await ask('POST', '/api/scale', await open(), { x: 'x'.repeat(70_000) });
    expect(status).toBe(413);
  });
});

describe('the stream of the dashboard', () => {
  it('begins with the cluster and the history, and goes on with what happens', async () => {
    const { open, host, url, client } = await serve();
    const { Cookie } = await open();
    const raw = await RawClient.open(url);
    raw.write(`GET /api/events HTTP/1.1\r\nHost: ${host}\r\nCookie: ${Cookie}\r\n\r\n`);
    await eventually(
      'the history',
      () => raw.text,
      (text) => text.includes('event: history'),
    );
    const reason = '</script><img src=x onerror=alert(1)>\n\nevent: forged\ndata: {}';
    client.status = { ...STATUS, cluster: { ...STATUS.cluster, reason } };
    await eventually(
      'the line',
      () => raw.text,
      (text) => text.includes('event: log'),
    );

    expect(raw.text).toContain('Content-Type: text/event-stream');
    expect(raw.text).toContain('"name":"shop"');
    // A text cannot end the data of its event.
    expect(raw.text).toContain(String.raw`onerror=alert(1)>\n\nevent: forged\ndata: {}`);
    expect(raw.text).not.toMatch(/^event: forged/m);
    raw.destroy();
  });
});
