import { afterEach, describe, expect, it, vi } from 'vitest';
import { ClusterAddressError } from '../../../../src/contract/errors/index.js';
import type { CollectedMetrics } from '../../../../src/contract/snapshot/index.js';
import { openAdminListener } from '../../../../src/observe/admin/admin-listener.js';
import { freePorts, holdPort } from '../../../support/free-ports.js';
import { held } from '../../../support/held.js';
import { request } from '../../../support/http-client.js';
import { RawClient } from '../../../support/raw-client.js';
import { body, SNAPSHOT } from '../../support/fake-relay.js';

afterEach(() => void vi.restoreAllMocks());

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
  it('are the health of the cluster, as JSON', async () => {
    const { get, source } = await open();
    for (const [path, details] of [
      ['/health', ['cluster', 'primary']],
      ['/health/ready?a=b?c', ['cluster']],
      ['/health/live?', []],
    ] as const) {
      const { status, headers, body: text } = await get(path);
      expect([path, status]).toEqual([path, 200]);
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
      expect(Object.keys(JSON.parse(text).details)).toEqual(details);
    }
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
    expect(page).toMatch(/^nestjs_cluster_workers_desired 2$/m);
    expect(page).toMatch(/^nestjs_cluster_worker_snapshot_age_seconds\{worker="1"\} 1.5$/m);
  });

  it.each([
    '/',
    '//metrics',
    '/health/',
    '/metrics%00',
    '/%6detrics',
    '/constructor',
    '/__proto__',
  ])('are no others: %s', async (path) => {
    const { get, source } = await open();
    const { status, body: text } = await get(path);
    expect([status, text]).toEqual([
      404,
      'not found; here are /health, /health/ready, /health/live, /metrics\n',
    ]);
    expect(source.snapshot).not.toHaveBeenCalled();
  });

  it('may neither be kept, nor taken for another type, nor read by other sites', async () => {
    const { get } = await open();
    for (const path of PATHS) {
      const { headers } = await get(path);
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers).not.toHaveProperty('access-control-allow-origin');
    }
  });
});

describe('a scrape of the admin listener', () => {
  it('collects once for all that ask meanwhile, in whatever encoding', async () => {
    const { url, get, source } = await open();
    const collected = held<CollectedMetrics>();
    source.collectMetrics.mockReturnValue(collected.promise);
    const plain = Array.from({ length: 20 }, () => get('/metrics'));
    const gzipped = RawClient.open(url).then(async (client) => {
      client.write(
        `GET /metrics HTTP/1.1\r\nHost: ${new URL(url).host}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n`,
      );
      await client.end();
      return client.text;
    });
    // Other routes do not wait.
    expect((await get('/health/live')).status).toBe(200);
    collected.resolve(COLLECTED);

    const pages = new Set((await Promise.all(plain)).map((page) => page.body));
    expect(pages.size).toBe(1);
    expect(await gzipped).toMatch(/^Content-Encoding: gzip\r$/m);
    const response = await fetch(`${url}/metrics`, { headers: { 'Accept-Encoding': 'gzip' } });
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect([...pages]).toEqual([await response.text()]);
    expect(source.collectMetrics).toHaveBeenCalledTimes(2);
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
        expect(text).toBe('unauthorized: send the token as Authorization: Bearer …\n');
      }
    }
    expect(source.snapshot).not.toHaveBeenCalled();
    expect(source.collectMetrics).not.toHaveBeenCalled();
  });
});

describe('a method', () => {
  it('HEAD is answered as GET, without a body', async () => {
    const { get, send } = await open();
    const plain = await get('/metrics', { 'Accept-Encoding': 'identity' });
    const head = await get('/metrics', { 'Accept-Encoding': 'identity' }, 'HEAD');
    expect([head.status, head.body]).toEqual([200, '']);
    expect(head.headers['content-length']).toBe(plain.headers['content-length']);
    // The connection goes on: not a byte of the body was sent.
    expect(
      await send(
        'HEAD /metrics HTTP/1.1\r\nHost: HOST\r\n\r\n' +
          'GET /nothing HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n',
      ),
    ).toMatch(/^HTTP\/1\.1 200 [^]*?\r\n\r\nHTTP\/1\.1 404 /);
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'])(
    '%s is refused',
    async (method) => {
      const { get } = await open();
      const { status, body: text } = await get('/metrics', {}, method);
      expect([status, text]).toEqual([405, 'only GET and HEAD\n']);
    },
  );
});

describe('a body', () => {
  const REQUEST = 'GET /health/live HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n';

  it.each([
    ['of known length', 'Content-Length: 5', 'hello'],
    ['in chunks', 'Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'],
    ['that is empty', 'Content-Length: 0', ''],
  ])('%s is skipped, and the next request is answered', async (_, header, sent) => {
    const { send } = await open();
    const text = await send(
      `POST /metrics HTTP/1.1\r\nHost: HOST\r\n${header}\r\n\r\n${sent}${REQUEST}`,
    );
    expect(text).toMatch(/^HTTP\/1\.1 405 [^]*HTTP\/1\.1 200 /);
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
