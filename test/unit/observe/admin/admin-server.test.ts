import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  type AdminAnswers,
  type AdminSource,
  PrimaryTimeout,
} from '../../../../src/observe/admin/admin-messages.js';
import { createAdminServer } from '../../../../src/observe/admin/admin-server.js';
import { hashOf } from '../../../../src/observe/admin/authorization.js';
import { eventually } from '../../../support/eventually.js';
import { held } from '../../../support/held.js';
import { request } from '../../../support/http-client.js';
import { RawClient } from '../../../support/raw-client.js';
import { body, SNAPSHOT } from '../../support/fake-relay.js';

const HELD: AdminAnswers['collectMetrics'] = {
  snapshot: SNAPSHOT,
  workers: [
    { slot: 0, ageMs: 0, body: body(3) },
    { slot: 1, ageMs: 1_500, body: body(4) },
  ],
  retired: [body(10)],
};

const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
});

/** A source that answers at once, unless told otherwise. */
const answering = (source: Partial<AdminSource> = {}) => ({
  snapshot: vi.fn(source.snapshot ?? (() => SNAPSHOT)),
  collectMetrics: vi.fn(source.collectMetrics ?? (async () => HELD)),
});

/** A server of this source on loopback, and where it is. */
async function serve(source: AdminSource = answering(), token?: string) {
  const hash = token === undefined ? undefined : hashOf(token);
  const server = createAdminServer('127.0.0.1', source, hash).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
    request(url, path, { headers, method });
  const url = `http://127.0.0.1:${port}`;
  let taken = 0;
  server.on('request', () => (taken += 1));
  /** Resolves once so many requests have been taken. */
  const requests = (count: number) =>
    eventually(
      `${count} requests`,
      () => taken,
      (so) => so >= count,
    );
  return { server, url, host: `127.0.0.1:${port}`, get, requests };
}

/** Sends a request whose response is not text. */
async function getBytes(url: string, headers: Record<string, string>) {
  const response = await fetch(url, { headers });
  return { headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
}

describe('a token', () => {
  it('is wanted on every path, also on those that there are not, and nothing is asked without it', async () => {
    const source = answering();
    const { get } = await serve(source, 'of-16-characters');
    for (const path of ['/health', '/health/live', '/health/ready', '/metrics', '/none']) {
      const { status, headers, body: text } = await get(path);
      expect([path, status]).toEqual([path, 401]);
      expect(headers['www-authenticate']).toBe('Bearer realm="nestjs-cluster"');
      expect(text).toBe('unauthorized: send the token as Authorization: Bearer …\n');
    }
    expect(source.snapshot).not.toHaveBeenCalled();
    expect(source.collectMetrics).not.toHaveBeenCalled();

    const authorization = 'Bearer of-16-characters';
    expect((await get('/health/live', { authorization })).status).toBe(200);
    expect((await get('/metrics', { authorization, host: 'pod.example' })).status).toBe(200);
  });

  it('that is right is let in, however many wrong ones its address has sent', async () => {
    const { get } = await serve(answering(), 'of-16-characters');
    const send = (token: string) => get('/health/live', { authorization: `Bearer ${token}` });
    for (let i = 0; i < 20; i += 1) expect((await send('none')).status).toBe(401);
    expect((await send('of-16-characters')).status).toBe(200);
  });
});

describe('the routes of the admin listener', () => {
  it('are the health of the cluster, as JSON', async () => {
    const { get } = await serve(answering({ snapshot: () => ({ ...SNAPSHOT, minReady: 0 }) }));
    for (const [path, details] of [
      ['/health', ['cluster', 'primary']],
      ['/health/ready', ['cluster']],
      ['/health/live', []],
    ] as const) {
      const { status, headers, body: text } = await get(path);
      expect([path, status]).toEqual([path, 200]);
      expect(headers['content-type']).toBe('application/json; charset=utf-8');
      expect(Object.keys(JSON.parse(text).details)).toEqual(details);
    }
  });

  it('are 503 for health and readiness, and 200 for life, where no worker is ready', async () => {
    const { get } = await serve();
    expect((await get('/health')).status).toBe(503);
    expect((await get('/health/ready')).status).toBe(503);
    expect((await get('/health/live')).status).toBe(200);
  });

  it('are the metrics of all workers, of those that are gone, and of the cluster', async () => {
    const { get } = await serve();
    const { status, headers, body: page } = await get('/metrics');
    expect(status).toBe(200);
    expect(headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(page).toMatch(/^c 17$/m);
    expect(page).toMatch(/^nestjs_cluster_workers_desired 2$/m);
    expect(page).toMatch(/^nestjs_cluster_snapshot_age_seconds 0$/m);
    expect(page).toMatch(/^nestjs_cluster_worker_snapshot_age_seconds\{worker="1"\} 1.5$/m);
  });

  it.each(['/metrics?', '/metrics?name[]=up', '/health?x=/metrics', '/health/live?a=b?c'])(
    'take a query: %s',
    async (path) => {
      const { get } = await serve(answering({ snapshot: () => ({ ...SNAPSHOT, minReady: 0 }) }));
      expect((await get(path)).status).toBe(200);
    },
  );

  it('are found in the form that a proxy sends, too', async () => {
    const { url, host } = await serve();
    const client = await RawClient.open(url);
    client.write(
      `GET http://${host}/health/live?x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    await client.end();
    expect(client.text).toMatch(/^HTTP\/1\.1 200 /);
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
    const source = answering();
    const { get } = await serve(source);
    const { status, headers, body: text } = await get(path);
    expect(status).toBe(404);
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(text).toBe('not found; here are /health, /health/ready, /health/live, /metrics\n');
    expect(source.snapshot).not.toHaveBeenCalled();
  });

  it('are not to be kept, nor taken for another type', async () => {
    const { get } = await serve();
    for (const path of ['/health', '/health/live', '/metrics', '/nothing']) {
      const { headers } = await get(path);
      expect(headers['cache-control']).toBe('no-store');
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers).not.toHaveProperty('access-control-allow-origin');
    }
  });
});

describe('a scrape of the admin listener', () => {
  it('is compressed where that is asked for', async () => {
    const { url, get } = await serve();
    const plain = (await get('/metrics', { 'Accept-Encoding': 'identity' })).body;
    const response = await request(url, '/metrics', { headers: { 'Accept-Encoding': 'gzip' } });
    expect(response.headers['content-encoding']).toBe('gzip');
    expect(Number(response.headers['content-length'])).toBeLessThan(plain.length);
    // fetch() undoes the encoding: what it gives is what was compressed.
    const { bytes } = await getBytes(`${url}/metrics`, { 'Accept-Encoding': 'gzip' });
    expect(bytes.toString()).toBe(plain);
  });

  it('collects once for all that ask meanwhile, whatever encoding they ask for', async () => {
    const collected = held<AdminAnswers['collectMetrics']>();
    const source = answering({ collectMetrics: () => collected.promise });
    const { url, get, requests } = await serve(source);
    const texts = Array.from({ length: 20 }, () => get('/metrics'));
    const compressed = getBytes(`${url}/metrics`, { 'Accept-Encoding': 'gzip' });
    await requests(21);

    collected.resolve(HELD);

    const pages = await Promise.all(texts);
    expect(new Set(pages.map((page) => page.body)).size).toBe(1);
    expect((await compressed).bytes.toString()).toBe(pages[0]!.body);
    expect(source.collectMetrics).toHaveBeenCalledTimes(1);
  });

  it('leaves the other routes alone while it waits', async () => {
    const { get } = await serve(answering({ collectMetrics: () => new Promise(() => {}) }));
    void get('/metrics');
    expect((await get('/health/live')).status).toBe(200);
  });
});

describe('a source that fails', () => {
  it.each([
    [503, 'the primary did not answer within 1000 ms\n', new PrimaryTimeout(1_000)],
    [500, 'internal error\n', new Error('EACCES: permission denied, /srv/secret')],
  ])('is %d for every path: %j', async (code, line, error) => {
    const fail = () => Promise.reject(error);
    const { get } = await serve(answering({ snapshot: fail, collectMetrics: fail }));
    for (const path of ['/health', '/health/live', '/health/ready', '/metrics']) {
      const { status, body: text } = await get(path);
      expect([path, status, text]).toEqual([path, code, line]);
    }
  });
});

describe('a request of another site', () => {
  it('is refused by its Host, before anything is asked', async () => {
    const source = answering();
    const { get } = await serve(source);
    for (const path of ['/health', '/metrics', '/nothing']) {
      const { status, body: text } = await get(path, { Host: 'evil.example' });
      expect(status).toBe(421);
      expect(text).not.toContain('health');
    }
    expect(source.snapshot).not.toHaveBeenCalled();
    expect(source.collectMetrics).not.toHaveBeenCalled();
  });

  it('is refused where it is an upgrade', async () => {
    const { get } = await serve();
    const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket', Host: 'evil.example' };
    expect((await get('/metrics', upgrade)).status).toBe(421);
  });

  it('without any Host is refused', async () => {
    const { url } = await serve();
    const client = await RawClient.open(url);
    client.write('GET /metrics HTTP/1.0\r\n\r\n');
    await client.end();
    expect(client.text).toMatch(/^HTTP\/1\.1 421 /);
    const newer = await RawClient.open(url);
    newer.write('GET /metrics HTTP/1.1\r\n\r\n');
    await newer.end();
    expect(newer.text).toMatch(/^HTTP\/1\.1 4\d\d /);
  });
});

describe('a method', () => {
  it('HEAD is answered as GET, without a body', async () => {
    const { url, host, get } = await serve();
    const plain = await get('/metrics', { 'Accept-Encoding': 'identity' });
    const head = await get('/metrics', { 'Accept-Encoding': 'identity' }, 'HEAD');
    expect([head.status, head.body]).toEqual([200, '']);
    expect(head.headers['content-length']).toBe(plain.headers['content-length']);
    // The connection goes on: not a byte of the body was sent.
    const client = await RawClient.open(url);
    client.write(
      `HEAD /metrics HTTP/1.1\r\nHost: ${host}\r\n\r\n` +
        `GET /nothing HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    await client.end();
    expect(client.text).toMatch(/^HTTP\/1\.1 200 [^]*?\r\n\r\nHTTP\/1\.1 404 /);
  });

  it.each(['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])('%s is refused', async (method) => {
    const { get } = await serve();
    const { status, body: text } = await get('/metrics', {}, method);
    expect([status, text]).toEqual([405, 'only GET and HEAD\n']);
  });
});

describe('a body', () => {
  const SMUGGLED = 'GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';

  it.each([
    ['of known length, POST', 'POST', `Content-Length: ${SMUGGLED.length}`, SMUGGLED],
    ['of known length, GET', 'GET', `Content-Length: ${SMUGGLED.length}`, SMUGGLED],
    ['that is not complete', 'POST', 'Content-Length: 1000', SMUGGLED],
    ['in chunks', 'POST', 'Transfer-Encoding: chunked', `5\r\nhello\r\n`],
  ])('%s closes the connection, and no request begins in it', async (_, method, header, sent) => {
    const { url, host } = await serve();
    const client = await RawClient.open(url);
    client.write(`${method} /metrics HTTP/1.1\r\nHost: ${host}\r\n${header}\r\n\r\n${sent}`);

    await client.end();

    expect(client.text.match(/^HTTP\/1\.1 /gm)).toHaveLength(1);
    expect(client.text).toMatch(method === 'GET' ? /^HTTP\/1\.1 200 / : /^HTTP\/1\.1 405 /);
    expect(client.text).toMatch(/^Connection: close\r$/m);
  });

  it('that is empty leaves the connection open', async () => {
    const { url, host } = await serve();
    const client = await RawClient.open(url);
    client.write(`GET /nothing HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\n\r\n`);
    await client.until(/ 404 [^]*\/metrics\n$/);
    client.write(`GET /nothing HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    await client.until(/ 404 [^]* 404 /);
    client.destroy();
  });

  it('however large is not read', async () => {
    const { url } = await serve();
    const large = 'x'.repeat(8 * 1024 * 1024);
    const { outcome, status } = await request(url, '/metrics', { method: 'POST', body: large });
    // It may be cut off while it is still being sent.
    expect([
      ['bad-status', 405],
      ['reset', undefined],
    ]).toContainEqual([outcome, status]);
    expect((await request(url, '/health/live')).status).toBe(200);
  });
});

describe('what the admin listener gives one client', () => {
  it('is a limited time, which Node looks at every second', async () => {
    const { server } = await serve();
    expect(server).toMatchObject({
      headersTimeout: 5_000,
      requestTimeout: 5_000,
      keepAliveTimeout: 20_000,
      // For a client that does not read what it asked for.
      timeout: 10_000,
      connectionsCheckingInterval: 1_000,
    });
  });

  it.each([
    ['say nothing', ''],
    ['have sent half a request', 'GET /health/live HTTP/1.1\r\n'],
    ['have an answer', 'GET /health/live HTTP/1.1\r\nHost: HOST\r\n\r\n'],
  ])('are 64 connections that %s: the oldest makes room for a probe', async (_, text) => {
    const { url, host } = await serve();
    const clients: RawClient[] = [];
    for (let i = 0; i < 64; i += 1) {
      const client = await RawClient.open(url);
      if (text !== '') client.write(text.replace('HOST', host));
      if (text.endsWith('\r\n\r\n')) await client.until(/ 200 [^]*\}$/);
      clients.push(client);
    }

    expect((await request(url, '/health/live')).status).toBe(200);

    expect(['fin', 'reset']).toContain(await clients[0]!.end());
    for (const client of clients) client.destroy();
  });
});
