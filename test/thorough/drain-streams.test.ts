import http from 'node:http';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { ONE_ADAPTER, OTHER_ADAPTER } from '../support/adapters.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, type LogLine, stopAll } from '../support/cluster-process.js';
import { began, cutBy, NEVER_MS, NOTHING_CUT, ONLY_THE_ASKER, openNow } from '../support/drain.js';
import { eventually } from '../support/eventually.js';
import { request } from '../support/http-client.js';
import { describeOnce, itOnce } from '../support/once.js';
import { RawClient } from '../support/raw-client.js';
import { GOING_AWAY, openDeafWebSocket, WebSocketClient } from '../support/web-socket-client.js';

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
    'tells those of a Nest gateway to close with 1001, and ends when they have (%s)',
    async (adapter) => {
      const cluster = await ClusterProcess.start({
        options: { shutdown: { drainTimeoutMs: NEVER_MS } },
        env: on(adapter, 'streams#gateway'),
      });
      const clients = await many(20, () => WebSocketClient.open(cluster.url));
      for (const client of clients) {
        client.send(JSON.stringify({ event: 'echo', data: 'hello' }));
        expect(await client.next()).toContain('hello');
      }

      cluster.kill('SIGTERM');

      expect(await Promise.all(clients.map(({ closed }) => closed))).toEqual(
        clients.map(() => ({ code: 1001, reason: '' })),
      );
      expect(await cluster.exited()).toEqual(EXITED_WELL);
      expect(cluster.output.match(/^web socket closed with 1001$/gm)).toHaveLength(clients.length);
      expectNoCut(cluster);
    },
  );

  itOnce('tells one that the app talks to all the time, between two messages', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: on(OTHER_ADAPTER, 'drain-bare-ws'),
    });
    const clients = await many(4, () => WebSocketClient.open(cluster.url));
    for (const client of clients) await client.next();

    cluster.kill('SIGTERM');

    expect(
      (await Promise.all(clients.map(({ closed }) => closed))).map(({ code }) => code),
    ).toEqual(clients.map(() => 1001));
    for (const { received } of clients) {
      expect(new Set(received)).toEqual(new Set(['x'.repeat(10_000)]));
    }
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });

  it('lets a handshake that the app still decides on end first', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: on(ONE_ADAPTER, 'drain-bare-ws'),
    });
    const opening = WebSocketClient.open(cluster.url, '/deciding');
    await cluster.until('the app to decide', () => cluster.output.includes('deciding\n'));

    cluster.kill('SIGTERM');

    expect((await (await opening).closed).code).toBe(1001);
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
        env: { ...behaviour('drain-attached-ws'), TEST_ADAPTER: adapter, TEST_WS: how },
      });
      const clients = await many(4, () => WebSocketClient.open(cluster.url));

      cluster.kill('SIGTERM');

      expect(
        (await Promise.all(clients.map(({ closed }) => closed))).map(({ code }) => code),
      ).toEqual(clients.map(() => 1001));
      expect(await cluster.exited()).toEqual(EXITED_WELL);
      expectNoCut(cluster);
    },
  );

  itOnce('tells one that came while it was a lame duck', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { lameDuckMs: 2_500, drainTimeoutMs: NEVER_MS } },
      env: on(ONE_ADAPTER, 'streams#gateway'),
    });
    cluster.kill('SIGTERM');
    await cluster.event('worker-draining');

    const client = await WebSocketClient.open(cluster.url);
    client.send(JSON.stringify({ event: 'echo', data: 'still served' }));
    expect(await client.next()).toContain('still served');

    expect((await client.closed).code).toBe(1001);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });

  itOnce('destroys those that ignore it at the deadline, and counts them', async () => {
    const cluster = await ClusterProcess.start({
      // Enough for the polite one.
      options: { workers: 1, shutdown: { drainTimeoutMs: 4_000 } },
      env: on(OTHER_ADAPTER, 'streams#gateway'),
    });
    const deaf = await many(3, () => openDeafWebSocket(cluster.url));
    const paused = await WebSocketClient.open(cluster.url);
    paused.pause();
    const polite = await WebSocketClient.open(cluster.url);

    cluster.kill('SIGTERM');

    await Promise.all(deaf.map((client) => client.until(new RegExp(GOING_AWAY))));
    expect((await polite.closed).code).toBe(1001);
    await Promise.all(deaf.map((client) => client.end()));
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    const [stopped] = cluster.all('worker-stopped');
    expect(stopped).toMatchObject({
      level: 'warn',
      destroyedConnections: 4,
      destroyedWebSockets: 4,
      abortedRequests: 0,
    });
    expect(stopped!.message).toContain('destroyed 4 connections with 0 requests and 4 WebSockets');
    // Told once, however often it was looked at.
    expect(deaf.map(({ text }) => text.split(GOING_AWAY).length - 1)).toEqual([1, 1, 1]);
    expectNoProblem(cluster);
  });

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

  it('counts none that is gone, whoever closed it', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: on(OTHER_ADAPTER, 'streams#gateway'),
    });
    const clients = await many(6, () => WebSocketClient.open(cluster.url));
    const deaf = await many(2, () => openDeafWebSocket(cluster.url));
    await openAtLeast(cluster, 8);

    for (const client of clients.slice(0, 3)) client.close();
    for (const client of clients.slice(3)) client.terminate();
    for (const client of deaf) client.destroy();

    await eventually(
      'none but the connection that asks',
      () => openNow(cluster.url),
      ({ connections, requests }) =>
        connections === ONLY_THE_ASKER.connections && requests === ONLY_THE_ASKER.requests,
    );
    cluster.kill('SIGTERM');
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expectNoCut(cluster);
  });
});

describeOnce('WebSockets', () => {
  it('are told by a worker whose primary is gone', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: behaviour('streams#gateway'),
    });
    const clients = await many(4, () => WebSocketClient.open(cluster.url));
    await many(2, () => openDeafWebSocket(cluster.url));

    cluster.kill('SIGKILL');

    // Within 3 s: seconds/deadlines.test.ts has that.
    await cluster.gone();
    expect(
      (await Promise.all(clients.map(({ closed }) => closed))).map(({ code }) => code),
    ).toEqual(clients.map(() => 1001));
  });

  it('are told by a single process without workers', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 0, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: behaviour('streams#gateway'),
    });
    const client = await WebSocketClient.open(cluster.url);

    cluster.kill('SIGTERM');

    expect((await client.closed).code).toBe(1001);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
  });

  it('that ignore it are destroyed at once by a second signal', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: behaviour('streams#gateway'),
    });
    const deaf = await openDeafWebSocket(cluster.url);
    cluster.kill('SIGTERM');
    await deaf.until(new RegExp(GOING_AWAY));

    cluster.kill('SIGTERM');

    await deaf.end();
    expect(await cluster.exited()).toEqual({ code: 143, signal: null });
    expect(cluster.all('worker-stopped')).toMatchObject([
      { destroyedConnections: 1, destroyedWebSockets: 1 },
    ]);
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

  it('gives a client that is behind all that was written before the end', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: NEVER_MS } },
      env: on(OTHER_ADAPTER, 'streams#events'),
    });
    const stream = await new Promise<http.IncomingMessage>((resolve, reject) => {
      http.get(`${cluster.url}/firehose`, { agent: false }, resolve).on('error', reject);
    });
    await cluster.until('much that is not read', () => cluster.output.includes('piled up\n'));

    cluster.kill('SIGTERM');
    await eventually(
      'new connections refused',
      () => request(cluster.url, '/hello', { timeoutMs: 1_000 }),
      ({ outcome }) => outcome === 'refused',
    );
    let end = '';
    for await (const chunk of stream) end = (end + String(chunk)).slice(-100);

    expect([stream.complete, end]).toEqual([true, expect.stringMatching(/\n\n$/)]);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expect(cluster.output).not.toContain('write after end');
    expectNoCut(cluster);
  });

  itOnce('counts none whose client is gone', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: on(ONE_ADAPTER, 'streams#events'),
    });
    const streams = await many(4, () => RawClient.open(cluster.url));
    for (const stream of streams) stream.get('/sse');
    await Promise.all(streams.map((stream) => stream.until(/data: /)));
    await eventually(
      'all of them counted',
      () => openNow(cluster.url),
      ({ requests }) => requests === streams.length + 1,
    );

    for (const stream of streams) stream.destroy();

    await eventually(
      'none but the request that asks',
      () => openNow(cluster.url),
      ({ connections, requests }) =>
        connections === ONLY_THE_ASKER.connections && requests === ONLY_THE_ASKER.requests,
    );
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
      env: on(ONE_ADAPTER, 'streams#bodies'),
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

  it('cuts an upload that does not, and one-byte senders, at the deadline', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1, shutdown: { drainTimeoutMs: 1_000 } },
      env: on(OTHER_ADAPTER, 'streams#bodies'),
    });
    const stalled = await RawClient.open(cluster.url);
    stalled.write(uploadHead + upload.slice(0, 100));
    await began(cluster, '/upload');
    const body = await dripping(cluster.url, upload, uploadHead);
    const head = await dripping(cluster.url, 'GET /hello HTTP/1.1\r\nX-Slow: ');
    await openAtLeast(cluster, 3);

    cluster.kill('SIGTERM');

    for (const client of [stalled, body, head]) {
      await client.end();
      expect(client.text).not.toMatch(/^HTTP\/1\.1 2/);
    }
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expect(cutBy(cluster.all('worker-stopped'))).toMatchObject({ connections: 3 });
    expectNoProblem(cluster);
  });

  it('gives a slow reader the whole of its response, and cuts one that stopped', async () => {
    const cluster = await ClusterProcess.start({
      // Enough for the slow one.
      options: { workers: 1, shutdown: { drainTimeoutMs: 6_000 } },
      env: on(ONE_ADAPTER, 'streams#bodies'),
    });
    const [slow, stopped] = await many(
      2,
      () =>
        new Promise<http.IncomingMessage>((resolve, reject) => {
          http.get(`${cluster.url}/big/32`, { agent: false }, resolve).on('error', reject);
        }),
    );
    stopped!.on('error', () => {});
    onTestFinished(() => void stopped!.destroy());

    cluster.kill('SIGTERM');
    await cluster.event('worker-draining');
    let bytes = 0;
    for await (const chunk of slow!) bytes += (chunk as Buffer).length;

    expect(bytes).toBe(32 * 1024 * 1024);
    expect(await cluster.exited()).toEqual(EXITED_WELL);
    expect(cutBy(cluster.all('worker-stopped'))).toEqual({
      connections: 1,
      requests: 1,
      webSockets: 0,
    });
    expectNoProblem(cluster);
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
    for (const client of webSockets) expect(client.text).toContain(GOING_AWAY);
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
