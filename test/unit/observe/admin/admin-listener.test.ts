import { describe, expect, it, vi } from 'vitest';
import { ClusterAddressError } from '../../../../src/contract/errors/errors.js';
import type { CollectedMetrics } from '../../../../src/contract/snapshot/types.js';
import { openAdminListener } from '../../../../src/observe/admin/admin-listener.js';
import { freePorts, holdPort } from '../../../support/free-ports.js';
import { held } from '../../../support/held.js';
import { request } from '../../../support/http-client.js';
import { RawClient } from '../../../support/raw-client.js';
import { body, SNAPSHOT } from '../../support/fake-relay.js';

const COLLECTED: CollectedMetrics = {
  snapshot: SNAPSHOT,
  workers: [
    { slot: 0, generation: 0, ageMs: 0, body: body(3) },
    { slot: 1, generation: 0, ageMs: 1_500, body: body(4) },
  ],
  retired: [body(10)],
};

const TOKEN = 'of-16-characters';
const PATHS = ['/health', '/health/live', '/health/ready', '/metrics', '/none'];

/** A listener on loopback, and the functions that it asks. */
async function open({ token }: { token?: string } = {}) {
  const source = {
    snapshot: vi.fn(() => ({ ...SNAPSHOT, minReady: 0 })),
    collectMetrics: vi.fn(async () => COLLECTED),
  };
  const warn = vi.fn();
  const url = await openAdminListener({ host: '127.0.0.1', port: 0, token }, source, warn);
  const { host } = new URL(url);
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    request(url, path, { headers, method });
  /** Sends this text, and gives what comes until the listener closes the connection. */
  const send = async (text: string) => {
    const client = await RawClient.open(url);
    client.write(text.replaceAll('HOST', host));
    await client.end();
    return client.text;
  };
  return { source, warn, url, host, get, send };
}

describe('the routes of the admin listener', () => {
  it('are the health of the cluster as JSON, which no one may keep or take for another type', async () => {
    const { get, source } = await open();
    for (const [path, details] of [
      ['/health', ['cluster', 'primary']],
      ['/health/ready?a=b?c', ['cluster']],
      ['/health/live?', []],
    ] as const) {
      const { status, headers, body: text } = await get(path);
      expect([path, status]).toEqual([path, 200]);
      expect(headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      });
      expect(Object.keys(JSON.parse(text).details)).toEqual(details);
    }
    const alive = { status: 'ok', info: {}, error: {}, details: {} };
    expect(JSON.parse((await get('/health/live')).body)).toEqual(alive);
    source.snapshot.mockReturnValue({ ...SNAPSHOT, minReady: 1 });
    const statuses = await Promise.all(PATHS.map(async (path) => (await get(path)).status));
    expect(statuses).toEqual([503, 200, 503, 200, 404]);
  });

  it('are the metrics of all workers, of those that have ended, and of the cluster', async () => {
    const { get } = await open();
    const { status, headers, body: page } = await get('/metrics?name[]=up');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(page).toMatch(/^c 17$/m);
    expect(page).toMatch(/^nestjs_cluster_worker_snapshot_age_seconds\{worker="1"\} 1.5$/m);
  });

  it('are also found in the form that a proxy sends', async () => {
    const { send } = await open();
    const line = 'GET http://HOST/health/live?x HTTP/1.1';
    expect(await send(`${line}\r\nHost: HOST\r\nConnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 200 /,
    );
  });

  it.each(['/', '//metrics', '/health/', '/%6detrics', '/__proto__'])(
    'are no others: %s',
    async (path) => {
      const { get, source } = await open();
      const { status, body: text } = await get(path);
      const routes = '/health, /health/ready, /health/live, /metrics';
      expect([status, text]).toEqual([404, `not found; use ${routes}\n`]);
      expect(source.snapshot).not.toHaveBeenCalled();
    },
  );
});

describe('a scrape of the admin listener', () => {
  it('collects once for all that ask meanwhile, in whatever encoding', async () => {
    const { url, get, source } = await open();
    const collected = held<CollectedMetrics>();
    source.collectMetrics.mockReturnValue(collected.promise);
    const gzipped = fetch(`${url}/metrics`, { headers: { 'Accept-Encoding': 'gzip' } });
    await vi.waitUntil(() => source.collectMetrics.mock.calls.length > 0);
    const plain = [get('/metrics'), get('/metrics')];
    // Other routes do not wait.
    expect((await get('/health/live')).status).toBe(200);
    collected.resolve(COLLECTED);

    const pages = new Set((await Promise.all(plain)).map((page) => page.body));
    expect((await gzipped).headers.get('content-encoding')).toBe('gzip');
    expect([...pages]).toEqual([await (await gzipped).text()]);
    expect(source.collectMetrics).toHaveBeenCalledTimes(1);
  });

  it('that fails is 500, and only the log says why, once a minute', async () => {
    const { get, source, warn } = await open();
    source.collectMetrics.mockRejectedValue(new Error('EACCES: permission denied, /srv/secret'));
    const { status, body: text } = await get('/metrics');
    expect([status, text]).toEqual([500, 'internal error\n']);
    await get('/metrics');
    expect(warn.mock.calls).toEqual([
      ['the admin listener cannot answer /metrics: Error: EACCES: permission denied, /srv/secret'],
    ]);
    expect((await get('/health/live')).status).toBe(200);
  });
});

describe('a token', () => {
  it('is wanted on every path, and nothing is asked without it', async () => {
    const { get, source } = await open({ token: TOKEN });
    for (const authorization of ['', 'Bearer none', `Basic ${TOKEN}`, `Bearer ${TOKEN}x`]) {
      for (const path of PATHS) {
        const { status, headers, body: text } = await get(path, { authorization });
        expect([path, status]).toEqual([path, 401]);
        expect(headers['www-authenticate']).toBe('Bearer realm="nestjs-cluster"');
        expect(text).toBe('unauthorized: send the header Authorization: Bearer <token>\n');
      }
    }
    expect(source.snapshot).not.toHaveBeenCalled();
    expect(source.collectMetrics).not.toHaveBeenCalled();
  });

  it('is enough, whatever the name of the host: a malicious page has none', async () => {
    const { get } = await open({ token: TOKEN });
    const authorization = `bearer  ${TOKEN} `;
    expect((await get('/metrics', { authorization, host: 'pod.example' })).status).toBe(200);
  });
});

describe('a request that a malicious page could have sent', () => {
  it.each(['evil.example', '127.0.0.1.evil.example:9464', '127.0.0.1, evil.example'])(
    'is refused by its Host, before anything is asked: %s',
    async (host) => {
      const { get, source } = await open();
      const { status, body: text } = await get('/health', { host }, 'POST');
      const refusal = 'misdirected request: the Host header names another server\n';
      expect([status, text]).toEqual([421, refusal]);
      expect(source.snapshot).not.toHaveBeenCalled();
    },
  );

  it.each(['10.2.3.4', '[fd00::1]:9464', 'LocalHost:80', 'my-app:9464'])(
    'is not one to an address or a name without a dot: %s',
    async (host) => {
      const { get } = await open();
      expect((await get('/metrics', { host })).status).toBe(200);
    },
  );

  it('is refused without a Host, and if it is an upgrade', async () => {
    const { send } = await open();
    expect(await send('GET /metrics HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 421 /);
    expect(await send('GET /metrics HTTP/1.1\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 /);
    const upgrade = 'Connection: close, Upgrade\r\nUpgrade: websocket\r\nHost: evil.example';
    expect(await send(`GET /metrics HTTP/1.1\r\n${upgrade}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 421 /);
  });

  it.each([
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ origin: 'https://HOST' }, 403],
    [{ origin: 'http://127.0.0.1:1' }, 403],
    [{ origin: 'http://HOST', 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
  ])('is known by the site that it comes from: %j is %d', async (headers, expected) => {
    const { get, host } = await open();
    const named = Object.entries(headers).map(([key, text]) => [key, text.replace('HOST', host)]);
    expect((await get('/metrics', Object.fromEntries(named))).status).toBe(expected);
  });
});

describe('a method', () => {
  it('HEAD is answered as GET, without a body', async () => {
    const { send } = await open();
    // The connection goes on: not a byte of the body was sent.
    expect(
      await send(
        'HEAD /metrics HTTP/1.1\r\nHost: HOST\r\n\r\n' +
          'GET /nothing HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n',
      ),
    ).toMatch(/^HTTP\/1\.1 200 [^]*Content-Length: \d{3}[^]*?\r\n\r\nHTTP\/1\.1 404 /);
  });

  it.each(['POST', 'OPTIONS'])('%s is refused', async (method) => {
    const { get } = await open();
    const { status, body: text } = await get('/metrics', {}, method);
    expect([status, text]).toEqual([405, 'use GET or HEAD\n']);
  });
});

describe('a body', () => {
  const SMUGGLED = 'GET /health/live HTTP/1.1\r\nHost: HOST\r\n\r\n';

  it.each([
    ['of known length, GET', 'GET', 'Content-Length: 60', SMUGGLED],
    ['that is not complete', 'POST', 'Content-Length: 1000', SMUGGLED],
    ['in chunks', 'POST', 'Transfer-Encoding: chunked', '5\r\nhello\r\n'],
  ])('%s closes the connection, and no request begins in it', async (_, method, header, sent) => {
    const { send } = await open();
    const text = await send(
      `${method} /metrics HTTP/1.1\r\nHost: HOST\r\n${header}\r\n\r\n${sent}`,
    );
    expect(text.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
    expect(text).toMatch(method === 'GET' ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 405 /);
    expect(text).toMatch(/^Connection: close\r$/m);
  });

  it('that is empty leaves the connection open', async () => {
    const { send } = await open();
    expect(
      await send(
        'GET /nothing HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n' +
          'GET /nothing HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n',
      ),
    ).toMatch(/ 404 [^]* 404 /);
  });
});

describe('the port of the admin listener', () => {
  it('takes 64 connections, and closes further ones at once', async () => {
    const { url, get } = await open();
    const clients = await Promise.all(Array.from({ length: 64 }, () => RawClient.open(url)));
    expect((await get('/health/live')).outcome).toBe('reset');
    for (const client of clients) client.destroy();
    await vi.waitFor(async () => expect((await get('/health/live')).status).toBe(200));
  });

  it('is waited for while another program has it, and its error names the address', async () => {
    const port = Number(await freePorts(1));
    const other = await holdPort(port);
    const source = { snapshot: () => SNAPSHOT, collectMetrics: async () => COLLECTED };
    const options = { host: '127.0.0.1', port, token: undefined };
    // It has waited for 3 s.
    const clock = vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValue(3_000);
    const error = await openAdminListener(options, source, () => {}).catch(
      (reason: unknown) => reason,
    );
    clock.mockRestore();
    expect(error).toBeInstanceOf(ClusterAddressError);
    expect((error as Error).message).toContain(`127.0.0.1:${port}`);

    const opened = openAdminListener(options, source, () => {});
    await new Promise((closed) => other.close(closed));
    expect(await opened).toBe(`http://127.0.0.1:${port}`);
  });
});
