import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import http2 from 'node:http2';
import net, { type AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../../support/patience.js';
import { WorkerSockets } from '../../../../src/worker/listen/sockets.js';
import { RequestTracker } from '../../../../src/worker/serve/tracker.js';

let tracker: RequestTracker;
let sockets: WorkerSockets;
let server: Server;

beforeEach(() => {
  tracker = new RequestTracker();
  sockets = new WorkerSockets(tracker, () => {});
  server = createServer((_, response) => response.end('hello'));
});
afterEach(() => {
  sockets.stop();
  tracker.unfollow();
  server.closeAllConnections();
  server.close();
});

const listen = (listener: net.Server = server) =>
  once(listener.listen(0, '127.0.0.1'), 'listening');
const urlOf = (listener: net.Server) =>
  `http://127.0.0.1:${(listener.address() as AddressInfo).port}/`;

async function ask(): Promise<void> {
  await (await fetch(urlOf(server), { headers: { connection: 'close' } })).text();
}

describe('a server that closes', () => {
  it('is followed once where it listens again', async () => {
    await listen();
    await ask();
    await once(server.close(), 'close');

    await listen();
    await ask();
    expect(tracker.requestsTotal).toBe(2);
    await vi.waitUntil(() => tracker.openConnections === 0, { timeout: PATIENCE_MS });
  });

  it('is forgotten, or an app that opens servers again and again would keep them all', async () => {
    await listen();
    await once(server.close(), 'close');
    const sweep = vi.spyOn(server, 'closeIdleConnections');

    tracker.closeIdle();
    expect(sweep).not.toHaveBeenCalled();

    await listen();
    tracker.closeIdle();
    expect(sweep).toHaveBeenCalledOnce();
  });

  it('is swept on in a drain, for connections that came over other sockets', async () => {
    const adopted = net.createServer((socket) => server.emit('connection', socket));
    await listen();
    await listen(adopted);
    const client = net.connect((adopted.address() as AddressInfo).port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n');
    await once(client, 'data');
    tracker.closeAfterResponse();
    net.Server.prototype.close.call(server);
    await once(server, 'close');
    expect(tracker.openConnections).toBe(1);
    await vi.waitUntil(
      () => {
        tracker.closeIdle();
        return tracker.openConnections === 0;
      },
      { timeout: PATIENCE_MS },
    );
    await once(adopted.close(), 'close');
  });
});

it('an idle connection in a drain stays open for a second after its last answer, and keeps no other one open', async () => {
  const isClosed = ({ closed, readableEnded }: net.Socket) => closed || readableEnded;

  /** A client that has sent this. */
  async function connect(text: string): Promise<net.Socket> {
    const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.on('error', () => {}).write(text);
    const before = tracker.openConnections;
    if (text.endsWith('\r\n\r\n')) await once(client, 'data');
    else await vi.waitUntil(() => tracker.openConnections > before, { timeout: PATIENCE_MS });
    return client.resume();
  }

  vi.useFakeTimers({ toFake: ['performance'] });
  tracker.observer = { finished: () => {}, aborted: () => {} };
  server.removeAllListeners('request').on('request', (_, response: ServerResponse) => {
    vi.advanceTimersByTime(5_000);
    response.end('hello');
  });
  await listen();
  const partial = await connect('GET / HTTP/1.1\r\nHost:');
  const silent = await connect('');
  const older = await connect('GET / HTTP/1.1\r\nHost: test\r\n\r\n');
  const recent = await connect('GET / HTTP/1.1\r\nHost: test\r\n\r\n');
  tracker.closeAfterResponse();
  vi.advanceTimersByTime(900);
  tracker.closeIdle();
  await vi.waitUntil(() => isClosed(older) && isClosed(silent), { timeout: PATIENCE_MS });
  expect([recent, partial].map(isClosed)).toEqual([false, false]);

  vi.advanceTimersByTime(200);
  tracker.closeIdle();
  await vi.waitUntil(() => isClosed(recent), { timeout: PATIENCE_MS });
  expect(isClosed(partial)).toBe(false);
});

it('the connections that a drain cuts are counted if the client has sent something, which a plug of the accept queue never does', async () => {
  await listen();
  const { port } = server.address() as AddressInfo;
  const silent = net.connect(port, '127.0.0.1');
  const asking = net.connect(port, '127.0.0.1');
  asking.on('error', () => {}).write('GET / HTTP/1.1\r\nHost:');
  const read = () => [...tracker.connections].map(({ socket }) => socket.bytesRead > 0);
  await vi.waitUntil(() => read().length === 2 && read().includes(true));

  expect(tracker.destroyAll()).toMatchObject({ destroyedConnections: 1, abortedRequests: 0 });
  await once(silent, 'close');
});

it('an event stream is ended once, and what the app writes later is dropped', async () => {
  let stream!: ServerResponse;
  server.removeAllListeners('request').on('request', (_, response: ServerResponse) => {
    stream = response.writeHead(200, { 'content-type': 'text/event-stream' });
    stream.write(': open\n\n');
  });
  await listen();
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n');
  await once(client, 'data');
  const [open, ...more] = tracker.endless.present();
  expect(more).toEqual([]);

  tracker.endless.leave(open);
  expect(stream.write('late')).toBe(true);
  const [last] = (await once(client, 'data')) as [Buffer];
  expect(String(last)).toBe('0\r\n\r\n');
  expect(tracker.endless.present()).toEqual([]);
  await once(client, 'end');
});

it('a response in a drain is sent whole to a client that reads late, and its connection is closed then', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const body = Buffer.alloc(20e6, 'x');
  server.removeAllListeners('request').on('request', (_, response: ServerResponse) => {
    response.end(body);
  });
  await listen();
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n');
  await once(client, 'readable');
  tracker.closeAfterResponse();
  vi.advanceTimersByTime(2_000);
  tracker.closeIdle(false);

  let bytes = 0;
  client.on('data', (chunk: Buffer) => (bytes += chunk.length));
  const isWhole = () => bytes > body.length && tracker.requestsInFlight === 0;
  await vi.waitUntil(() => isWhole() || client.closed, { timeout: PATIENCE_MS });
  expect(bytes).toBeGreaterThan(body.length);
  tracker.closeIdle(false);
  await once(client, 'close');
});

it('a server of HTTP/2 that answers streams, as that of gRPC does, sends its own trailers', async () => {
  const grpc = http2.createServer();
  grpc.on('stream', (stream) => {
    stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.respond({ ':status': 200 }, { waitForTrailers: true });
    stream.end('hello');
  });
  await listen(grpc);
  const session = http2.connect(urlOf(grpc));
  const request = session.request().resume();
  const trailers = once(request, 'trailers');
  await once(request, 'close');
  session.destroy();
  grpc.close();

  // Node's own listener would send trailers too, and one of the two would throw.
  expect(grpc.listenerCount('stream')).toBe(1);
  expect((await trailers)[0]).toMatchObject({ 'grpc-status': '0' });
});
