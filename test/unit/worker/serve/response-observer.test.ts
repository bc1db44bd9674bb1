import { EventEmitter } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ResponseObserver } from '../../../../src/contract/snapshot/types.js';
import { FakeServer } from '../../support/fake-traffic.js';

/** Keeps what it is told. */
function observer() {
  const finished: { request: object; response: object; ms: number; bytes?: number | undefined }[] =
    [];
  const told = { finished, aborted: [] as unknown[] };
  const one: ResponseObserver = {
    finished: (request, response, ms, bytes) =>
      void told.finished.push({ request, response, ms, bytes }),
    aborted: (request) => void told.aborted.push(request),
  };
  return { one, ...told };
}

function start() {
  vi.useFakeTimers();
  const server = new FakeServer();
  onTestFinished(() => server.stop());
  const { one, ...told } = observer();
  server.tracker.observer = one;
  return { server, client: server.connect(), ...told };
}

const EVENT_STREAM = 'text/event-stream; charset=utf-8';

describe('whoever observes responses', () => {
  it('is told of each with its duration and the bytes that were sent for it', () => {
    const { client, finished, aborted } = start();
    const first = client.send();
    vi.advanceTimersByTime(30);
    client.socket.bytesWritten += 250;
    first.finish();
    const second = client.send();
    client.socket.bytesWritten += 1_000;
    second.finish();
    expect(finished).toEqual([
      { request: first.request, response: first.response, ms: 30, bytes: 250 },
      { request: second.request, response: second.response, ms: 0, bytes: 1_000 },
    ]);
    expect(aborted).toEqual([]);
  });

  it.each([false, true])(
    'is told of a request whose client goes away before the end of the response (begun: %s)',
    (begun) => {
      const { client, finished, aborted } = start();
      const exchange = client.send();
      if (begun) exchange.writeHead();
      client.close();
      expect([finished, aborted]).toEqual([[], [exchange.request]]);
    },
  );

  it('is told of no stream of events, however it ends', () => {
    const { server, client, finished, aborted } = start();
    client.send().setHeader('Content-Type', EVENT_STREAM).finish();
    const open = server.connect();
    open.send().setHeader('Content-Type', EVENT_STREAM).writeHead();
    open.close();
    expect([finished, aborted]).toEqual([[], []]);
  });

  it('is told of a request for one that was not answered yet', () => {
    const { client, aborted } = start();
    const exchange = client.send().setHeader('Content-Type', EVENT_STREAM);
    client.close();
    expect(aborted).toEqual([exchange.request]);
  });

  it('is told of no stream of events whose type was given to writeHead()', () => {
    const { client, finished } = start();
    const exchange = client.send();
    Object.assign(exchange.response, {
      _header: 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n',
    });
    exchange.finish();
    expect(finished).toEqual([]);
    const other = client.send();
    Object.assign(other.response, { _header: 'HTTP/1.1 200 OK\r\n\r\n' });
    other.finish();
    expect(finished).toHaveLength(1);
  });

  it('is told of nothing that the drain cuts off: no client left', () => {
    const { server, client, aborted } = start();
    client.send();
    Object.assign(client.socket, { destroy: () => client.close() });
    server.tracker.destroyAll();
    expect([client.closed, aborted]).toEqual([true, []]);
  });

  it('is told of no WebSocket', () => {
    const { client, finished, aborted } = start();
    client.send();
    client.connection.webSocket = true;
    client.close();
    expect([finished, aborted]).toEqual([[], []]);
  });
});

it.each([
  ['a response that was sent', 'GET', true, 'text/plain', 'finished'],
  ['a client that left', 'GET', false, 'text/plain', 'aborted'],
  ['nothing for a WebSocket', 'CONNECT', true, 'text/plain', undefined],
  ['nothing for a WebSocket', 'CONNECT', false, 'text/plain', undefined],
  ['nothing for a stream of events', 'GET', true, 'text/event-stream', undefined],
  ['nothing for a stream of events', 'GET', false, 'text/event-stream', undefined],
] as const)(
  'a stream of HTTP/2 that is over is %s: %s, ended %s, %s',
  (_, method, writableEnded, type, as) => {
    const { server, client, finished, aborted } = start();
    const request = {
      method,
      httpVersionMajor: 2,
      stream: { session: server.openSession(client) },
    };
    const about = { req: request, headersSent: true, writableEnded, getHeader: () => type };
    const response = Object.assign(new EventEmitter(), about);
    server.server.emit('request', request, response);
    vi.advanceTimersByTime(12);
    response.emit('close');
    // Its size is not known.
    const all = as === 'finished' ? [{ request, response, ms: 12, bytes: undefined }] : [];
    expect([finished, aborted]).toEqual([all, as === 'aborted' ? [request] : []]);
  },
);
