import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import http from 'node:http';
import http2 from 'node:http2';
import net, { type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { QuarantineEntry } from '../../../../src/contract/ipc/index.js';
import { AppRoutes } from '../../../../src/worker/quarantine/app-routes.js';
import { RequestGate } from '../../../../src/worker/quarantine/request-gate.js';
import { RequestGuard } from '../../../../src/worker/quarantine/request-guard.js';
import { RequestWatch } from '../../../../src/worker/quarantine/request-watch.js';
import { RequestTracker } from '../../../../src/worker/http/request-tracker.js';

const servers: http.Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function getByHttp1(base: string, path: string) {
  return (await fetch(`${base}${path}`, { headers: { connection: 'close' } })).status;
}

async function getByHttp2(base: string, path: string) {
  const session = http2.connect(base);
  const stream = session.request({ ':path': path });
  const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
  await text(stream);
  session.close();
  return (headers as Record<string, unknown>)[':status'];
}

async function start() {
  const routes = new AppRoutes();
  routes.add('get', '/items/:id');
  const app = vi.fn((_: http.IncomingMessage, response: http.ServerResponse) =>
    response.end('app'),
  );
  const tell = vi.fn();
  const give = vi.fn();
  const server = http.createServer(app);
  servers.push(server);
  const gate = new RequestGate();
  const guard = new RequestGuard(gate, (request) => routes.fingerprint(request), tell, give);
  gate.follow(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const entry = (url: string | null, trial = false): QuarantineEntry => ({
    id: 1,
    method: 'GET',
    route: '/items/:id',
    url: url === null ? null : routes.fingerprint({ method: 'GET', url })!.url,
    trial,
  });
  const ask = async (path: string) => {
    const { status, headers } = await fetch(`${base}${path}`);
    return status === 503 ? `503 after ${headers.get('retry-after')}` : status;
  };
  return { guard, gate, server, app, tell, give, entry, ask };
}

describe('a request under quarantine', () => {
  it('is answered 503, and the app never sees it; other URLs of its route are answered', async () => {
    const { guard, app, entry, ask } = await start();
    guard.set([entry('/items/7?x=1')], false);
    expect(await ask('/items/7?x=1')).toBe('503 after 60');
    expect(app).not.toHaveBeenCalled();
    expect([await ask('/items/7'), await ask('/items/8'), await ask('/hello')]).toEqual([
      200, 200, 200,
    ]);
  });

  it('is each of a route where that is meant', async () => {
    const { guard, entry, ask } = await start();
    guard.set([entry(null)], false);
    expect([await ask('/items/7'), await ask('/items/8'), await ask('/items/8/parts')]).toEqual([
      '503 after 60',
      '503 after 60',
      200,
    ]);
  });

  it('is given to the app once where a trial is allowed', async () => {
    const { guard, tell, entry, ask } = await start();
    guard.set([entry('/items/7', true)], false);
    expect([await ask('/items/7'), await ask('/items/7')]).toEqual([200, '503 after 60']);
    expect(tell.mock.calls).toEqual([[1, false]]);
  });

  it('leaves the server as it was once there is none', async () => {
    const { guard, server, entry, ask } = await start();
    expect(Object.hasOwn(server, 'emit')).toBe(false);
    guard.set([entry('/items/7')], false);
    expect(Object.hasOwn(server, 'emit')).toBe(true);
    guard.set([], false);
    expect(Object.hasOwn(server, 'emit')).toBe(false);
    expect(await ask('/items/7')).toBe(200);
  });
});

describe('while requests are watched', () => {
  /** Sends requests at once. */
  const send = (server: http.Server, paths: readonly string[]) => {
    const { port } = server.address() as AddressInfo;
    const socket = net.connect(port, '127.0.0.1');
    socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''));
    return socket;
  };
  const closed = async (server: http.Server) => {
    const [socket] = (await once(server, 'connection')) as [net.Socket];
    await new Promise((resolve) => socket.once('close', resolve));
  };

  it.each([
    ['closed its connection', (socket: net.Socket) => socket.destroy()],
    ['reset it', (socket: net.Socket) => socket.resetAndDestroy()],
    ['closed its half, as Node then closes the other', (socket: net.Socket) => socket.end()],
  ])('the app is given no request whose client has %s', async (_, leave) => {
    const { guard, server, app, give, ask } = await start();
    guard.set([], true);
    const socket = send(server, ['/items/7']).on('error', () => {});
    socket.once('connect', () => leave(socket));
    await closed(server);
    expect(app).not.toHaveBeenCalled();
    expect(give).not.toHaveBeenCalled();
    expect(await ask('/items/7')).toBe(200);
    expect(give).toHaveBeenCalledOnce();
  });

  it('a client that has closed its half is answered where the server allows that', async () => {
    const { guard, server } = await start();
    Object.assign(server, { httpAllowHalfOpen: true });
    guard.set([], true);
    const socket = send(server, ['/items/7']);
    socket.end();
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 /);
  });

  it('requests that the app has not been given yet are known, and keep their order', async () => {
    const { guard, gate, server, app } = await start();
    guard.set([], true);
    const arrived: http.IncomingMessage[] = [];
    const note = (message: unknown) =>
      arrived.push((message as { request: http.IncomingMessage }).request);
    subscribe('http.server.request.start', note);
    const held: unknown[] = [];
    app.mockImplementation((request, response) => {
      held.push([
        request.url,
        ...arrived.filter((each) => gate.held.has(each)).map(({ url }) => url),
      ]);
      return response.end();
    });
    const socket = send(server, ['/1', '/2', '/3']);
    await vi.waitFor(() => expect(app).toHaveBeenCalledTimes(3));
    unsubscribe('http.server.request.start', note);
    socket.destroy();
    expect(held).toEqual([['/1', '/2', '/3'], ['/2', '/3'], ['/3']]);
  });
});

describe.each([
  ['HTTP/1.1', (app: http.RequestListener) => http.createServer(app), getByHttp1],
  ['HTTP/2', (app: http.RequestListener) => http2.createServer(app as never), getByHttp2],
] as const)('a request by %s', (_, createServer, get) => {
  it('is told to the primary before the app is given it, or answered 503 under quarantine', async () => {
    const app = vi.fn((__: http.IncomingMessage, response: http.ServerResponse) => response.end());
    const server = createServer(app) as http.Server;
    servers.push(server);
    const tracker = new RequestTracker();
    const send = vi.fn(() => {
      expect(app).not.toHaveBeenCalled();
      return Promise.resolve();
    });
    const gate = new RequestGate();
    const watch = new RequestWatch({ tracker, endpoints: [] }, gate, { send });
    for (const each of [tracker, gate]) each.follow(server);
    watch.hear({ type: 'quarantine', watch: true, entries: [] });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;

    const began = gate.routes.fingerprint({ method: 'GET', url: '/7' })!;
    expect(await get(`http://127.0.0.1:${port}`, '/7')).toBe(200);
    expect(send.mock.calls).toEqual([[{ type: 'flight', n: 1, began, ended: [] }]]);

    app.mockClear();
    send.mockImplementation(() => Promise.resolve());
    const { method, route, url } = began;
    const entries = [{ id: 1, method, route, url, trial: false }];
    watch.hear({ type: 'quarantine', watch: false, entries });
    expect(await get(`http://127.0.0.1:${port}`, '/7')).toBe(503);
    expect(app).not.toHaveBeenCalled();
    tracker.unfollow();
  });
});

/** A worker that watches its requests, or may be told to. */
async function serve() {
  const tracker = new RequestTracker();
  const send = vi.fn((_message: object) => Promise.resolve());
  const gate = new RequestGate();
  const watch = new RequestWatch({ tracker, endpoints: ['/health'] }, gate, { send });
  const begun: string[] = [];
  const server = http.createServer((request, response) => {
    begun.push(request.url!);
    if (request.url === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(':\n\n');
    }
    if (request.url !== '/fails') return;
    setTimeout(() => {
      watch.tellSuspects('error');
      response.end();
    });
  });
  servers.push(server);
  for (const each of [tracker, gate]) each.follow(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    tracker.unfollow();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const ask = async (path: string) => {
    http.get(`http://127.0.0.1:${port}${path}`, (answer) => answer.resume()).on('error', () => {});
    await vi.waitFor(() => expect(begun).toContain(path));
  };
  const told = () => send.mock.calls.map(([message]) => message).at(-1);
  return { watch, ask, told, send };
}

describe('a worker that ends by an error tells', () => {
  it('the request whose asynchronous context the error has, whatever else is in flight', async () => {
    const { watch, ask, told } = await serve();
    watch.hear({ type: 'quarantine', watch: true, entries: [] });
    await ask('/waits');
    await ask('/fails');
    await vi.waitFor(() =>
      expect(told()).toMatchObject({
        type: 'suspects',
        certain: true,
        suspects: [{ path: '/fails' }],
      }),
    );
  });

  it('none for an error without the context of one', async () => {
    const { watch, ask, told } = await serve();
    watch.hear({ type: 'quarantine', watch: true, entries: [] });
    await ask('/waits');
    watch.tellSuspects('error');
    expect(told()).toEqual({ type: 'suspects', certain: true, suspects: [] });
  });

  it('none for an error while requests are not watched: their contexts are not known', async () => {
    const { watch, ask, told } = await serve();
    await ask('/waits');
    watch.tellSuspects('error');
    expect(told()).toEqual({ type: 'suspects', certain: true, suspects: [] });
  });
});

describe('what is at work in a worker that blocks, or ends of its own accord', () => {
  it('is all that is in flight, but its own endpoints', async () => {
    const { watch, ask, told } = await serve();
    await ask('/waits');
    await ask('/health');
    const suspects = [{ path: '/waits' }];
    expect(watch.suspects).toMatchObject({ certain: false, suspects });
    watch.tellSuspects('exit');
    expect(told()).toMatchObject({ type: 'suspects', certain: false, suspects });
  });

  it('is no stream of events that has begun: it is there whatever ends the worker', async () => {
    const { watch, ask } = await serve();
    await ask('/events');
    await ask('/waits');
    expect(watch.suspects.suspects).toMatchObject([{ path: '/waits' }]);
  });

  it('is told to the primary, which hears that a stream of events has begun', async () => {
    const { watch, ask, send } = await serve();
    watch.hear({ type: 'quarantine', watch: true, entries: [] });
    await ask('/waits');
    await ask('/events');
    await vi.waitFor(() =>
      expect(send.mock.calls.map(([message]) => message)).toMatchObject([
        { type: 'flight', n: 1, began: { path: '/waits' } },
        { type: 'flight', n: 2, began: { path: '/events' } },
        { type: 'flight', n: 0, ended: [2] },
      ]),
    );
    watch.hear({ type: 'quarantine', watch: false, entries: [] });
  });
});
