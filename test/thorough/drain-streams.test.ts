import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { ONE_ADAPTER, OTHER_ADAPTER } from '../support/adapters.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type LogLine, stopAll } from '../support/cluster-process.js';
import { began, cutBy, NEVER_MS, NOTHING_CUT, openNow } from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { itOnce } from '../support/once.js';
import { RawClient } from '../support/raw-client.js';
import {
  SERVICE_RESTART,
  openDeafWebSocket,
  WebSocketClient,
} from '../support/web-socket-client.js';

afterEach(stopAll);

/** A behaviour on an adapter. */
const on = (adapter: string, name: string) => ({ ...behaviour(name), TEST_ADAPTER: adapter });

/** All chunks of a chunked body are whole, and the last one is there. */
const COMPLETE_CHUNKED = /^HTTP\/1\.1 200 OK\r\n[^]*\r\n0\r\n\r\n$/;

const EXITED_WELL = { code: 0, signal: null };

function many<T>(count: number, one: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, one));
}

/** Both workers have left, with nothing to complain of. */
function expectNoCut(cluster: ClusterProcess): void {
  expect(cutBy(cluster.all('worker-stopped'))).toEqual(NOTHING_CUT);
  expectNoProblem(cluster);
}

function expectNoProblem(cluster: ClusterProcess): void {
  expect(cluster.all('worker-stopped').filter(({ problem }) => problem !== null)).toEqual([]);
  expect(cluster.all('worker-died')).toEqual([]);
  expect(cluster.all('worker-failing')).toEqual([]);
  expect(cluster.survivors()).toEqual([]);
}

/** Sends `begun`, and then one byte of `text` each second, from the start again after its end. */
async function dripping(base: string, text: string, begun = ''): Promise<RawClient> {
  const client = await RawClient.open(base);
  let next = 0;
  const send = (): void => client.write(text[next++ % text.length]!);
  client.write(begun);
  send();
  const timer = setInterval(send, 1_000);
  onTestFinished(() => clearInterval(timer));
  void client.ended.then(() => clearInterval(timer));
  return client;
}

async function openAtLeast(cluster: ClusterProcess, connections: number): Promise<void> {
  await eventually(
    `${connections} connections`,
    () => openNow(cluster.url),
    (open) => open.connections >= connections + 1,
  );
}

describe('the drain of WebSockets', () => {
  it.each([ONE_ADAPTER, 'node'])(
    'tells those of a Nest gateway to close with 1012, and ends when they have (%s)',
    async (adapter) => {
      const cluster = await ClusterProcess.start({
        options: { shutdown: { drainTimeoutMs: NEVER_MS } },
        env: on(adapter, 'streams#everything'),
      });
      const clients = await many(20, () => WebSocketClient.open(cluster.url));
      for (const client of clients) {
        client.send(JSON.stringify({ event: 'echo', data: 'hello' }));
        expect(await client.next()).toContain('hello');
      }

      cluster.kill('SIGTERM');

      expect(await Promise.all(clients.map(({ closed }) => closed))).toEqual(
        clients.map(() => ({ code: 1012, reason: '' })),
      );
      expect(await cluster.exited()).toEqual(EXITED_WELL);
      expect(cluster.output.match(/^web socket closed with 1012$/gm)).toHaveLength(clients.length);
      expectNoCut(cluster);
    },
  );

  itOnce('tells one that the app talks to all the time, between two messages', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: on(OTHER_ADAPTER, 'drain-ws'),
    });
    const clients = await many(4, () => WebSocketClient.open(cluster.url, '/talking'));
    for (const client of clients) await client.next();

    cluster.kill('SIGTERM');

    expect(
      (await Promise.all(clients.map(({ closed }) => closed))).map(({ code }) => code),
    ).toEqual(clients.map(() => 1012));
    for (const { received } of clients) {
      expect(new Set(received)).toEqual(new Set(['x'.repeat(10_000)]));
    }
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });

  it('lets a handshake that the app still decides on end first', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: on(ONE_ADAPTER, 'drain-ws'),
    });
    const opening = WebSocketClient.open(cluster.url, '/deciding');
    await cluster.until('the app to decide', () => cluster.output.includes('deciding\n'));

    cluster.kill('SIGTERM');

    expect((await (await opening).closed).code).toBe(1012);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });

  it.each([
    { how: 'attached', adapter: ONE_ADAPTER },
    { how: 'routed', adapter: OTHER_ADAPTER },
  ])(
    'tells those of a server $how in createApp() that has said nothing since its handshake',
    async ({ how, adapter }) => {
      const cluster = await ClusterProcess.start({
        options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
        env: { ...behaviour('drain-ws'), TEST_ADAPTER: adapter, TEST_WS: how },
      });
      const clients = await many(4, () => WebSocketClient.open(cluster.url));

      cluster.kill('SIGTERM');

      expect(
        (await Promise.all(clients.map(({ closed }) => closed))).map(({ code }) => code),
      ).toEqual(clients.map(() => 1012));
      expect(await cluster.exited()).toEqual(EXITED_WELL);
      expectNoCut(cluster);
    },
  );

  it('makes nobody of an app without WebSockets take an upgrade', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { TEST_ADAPTER: ONE_ADAPTER },
    });

    const { status, body } = await request(cluster.url, '/hello', {
      headers: { connection: 'Upgrade', upgrade: 'websocket' },
    });

    expect([status, body]).toEqual([200, 'Hello World!']);
    // Asks for HTTP/2 in clear text, as curl does: a request like any other.
    const h2c = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': '' };
    expect((await request(cluster.url, '/hello', { headers: h2c })).status).toBe(200);
  });
});

describe('the drain of event streams', () => {
  it.each([
    {
      adapter: ONE_ADAPTER,
      path: '/sse',
      source: 'one of Nest with an event every millisecond',
    },
    {
      adapter: OTHER_ADAPTER,
      path: '/raw-sse',
      source: 'one whose source writes on after the end',
    },
  ])('ends $source, with its body complete', async ({ adapter, path }) => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: on(adapter, 'streams#events'),
    });
    const streams = await many(3, () => RawClient.open(cluster.url));
    // The first comes on a connection that had another request before it.
    for (const stream of streams.slice(1)) stream.get(path);
    streams[0]!.get('/hello', path);
    await Promise.all(streams.map((stream) => stream.until(/data: [^]*data: /)));

    cluster.kill('SIGTERM');

    expect(await Promise.all(streams.map((stream) => stream.end()))).toEqual(
      streams.map(() => 'fin'),
    );
    for (const { text } of streams) expect(text).toMatch(COMPLETE_CHUNKED);
    expect(streams.map(({ text }) => text.match(/HTTP\/1\.1 200 OK\r$/gm)?.length)).toEqual([
      2, 1, 1,
    ]);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });
});

describe('the drain of slow clients', () => {
  const upload = JSON.stringify({ text: 'x'.repeat(1_000) });
  const uploadHead = [
    'POST /upload HTTP/1.1',
    'Host: test',
    'Content-Type: application/json',
    `Content-Length: ${upload.length}`,
    '',
    '',
  ].join('\r\n');

  it('answers an upload that ends within the deadline, and a head that does', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: on(ONE_ADAPTER, 'streams#announced'),
    });
    const body = await RawClient.open(cluster.url);
    body.write(uploadHead + upload.slice(0, 100));
    await began(cluster, '/upload');
    const head = await RawClient.open(cluster.url);
    head.write('GET /hello HTTP/1.1\r\nHo');
    await openAtLeast(cluster, 2);

    cluster.kill('SIGTERM');
    await eventually(
      'new connections refused',
      () => request(cluster.url, '/hello', { timeoutMs: 1_000 }),
      ({ outcome }) => outcome === 'refused',
    );
    body.write(upload.slice(100));
    head.write('st: test\r\n\r\n');

    expect([await body.end(), await head.end()]).toEqual(['fin', 'fin']);
    expect(body.text).toMatch(/^HTTP\/1\.1 201 Created\r\n[^]*"length":1000/);
    expect(head.text).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*Hello World!$/);
    for (const { text } of [body, head]) expect(text).toMatch(/^connection: close\r$/im);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });
});

describe('a drain with everything that holds one at once', () => {
  it('ends by its deadline, and says what it cut', async () => {
    const cluster = await ClusterProcess.start({
      options: { shutdown: { drainTimeoutMs: 4_000 } },
      env: on(ONE_ADAPTER, 'streams#everything'),
    });
    const silent = await many(20, () => RawClient.open(cluster.url));
    const heads = await many(10, () => dripping(cluster.url, 'GET /hello HTTP/1.1\r\nX-S: '));
    const bodies = await many(10, () =>
      dripping(
        cluster.url,
        ' ',
        'POST /hello HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n',
      ),
    );
    const webSockets = await many(20, () => openDeafWebSocket(cluster.url));
    const streams = await many(5, () => RawClient.open(cluster.url));
    for (const stream of streams) stream.get('/sse');
    await Promise.all(streams.map((stream) => stream.until(/data: /)));
    await openAtLeast(cluster, 65);

    cluster.kill('SIGTERM');

    // Within a second of the deadline: seconds/deadlines.test.ts has that.
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expect(await Promise.all(silent.map((client) => client.end()))).toEqual(
      silent.map(() => 'fin'),
    );
    for (const stream of streams) {
      expect(await stream.end()).toBe('fin');
      expect(stream.text).toMatch(COMPLETE_CHUNKED);
    }
    for (const client of webSockets) expect(client.text).toContain(SERVICE_RESTART);
    for (const client of [...heads, ...bodies]) {
      expect(client.text).not.toMatch(/^HTTP\/1\.1 200/);
    }
    const stopped = cluster.all('worker-stopped');
    expect(cutBy(stopped)).toEqual({ connections: 40, requests: 10, webSockets: 20 });
    const cut = (line: LogLine) => {
      const webSockets = Number(line['destroyedWebSockets']);
      return (
        `destroyed ${String(line['destroyedConnections'])} connections with ` +
        `${String(line['abortedRequests'])} requests${webSockets > 0 ? ` and ${webSockets} WebSockets` : ''}`
      );
    };
    for (const line of stopped.filter((each) => Number(each['destroyedConnections']) > 0)) {
      expect(line.level).toBe('warn');
      expect(line.message).toContain(cut(line));
    }
    expectNoProblem(cluster);
  });
});
