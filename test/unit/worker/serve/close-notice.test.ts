import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type FakeClient, FakeServer } from '../../support/fake-traffic.js';

let server: FakeServer;
let client: FakeClient;

beforeEach(() => {
  vi.useFakeTimers();
  server = new FakeServer();
  client = server.connect();
});
afterEach(() => {
  server.stop();
});

describe('a connection that is to leave', () => {
  it('is not closed by its next request, but by the one after it', () => {
    client.use(3).connection.leave();
    expect(client.send().finish().asksToClose).toBe(false);
    expect(client.connection.closeNotice?.sent).toBe(false);
    const second = client.send();
    expect(second.asksToClose).toBe(true);
    expect(client.connection.closeNotice?.sent).toBe(true);
    second.finish();
    expect(server.tracker.rebalancedConnectionsTotal).toBe(1);
  });

  it('asks for nothing where the response closes it anyway', () => {
    client.connection.leave();
    client.use(1);
    const exchange = client.send({ 'content-length': '5' });
    exchange.response.shouldKeepAlive = false;
    exchange.bodyRead();
    exchange.finish();
    expect(server.tracker.rebalancedConnectionsTotal).toBe(0);
  });

  it('does not count where its client left unasked', () => {
    client.connection.leave();
    client.use(1).close();
    server.connect().close();
    expect(server.tracker.rebalancedConnectionsTotal).toBe(0);
  });
});

describe('a request with a body', () => {
  beforeEach(() => {
    client.connection.leave();
    client.use(1);
  });

  it.each([
    { 'content-length': '5' },
    { 'transfer-encoding': 'chunked' },
    { 'content-length': '0', 'transfer-encoding': 'chunked' },
  ])('is answered with the question once the body has been read, not before: %j', (headers) => {
    const exchange = client.send(headers);
    expect(exchange.asksToClose).toBe(false);
    expect(client.connection.closeNotice?.sent).toBe(false);
    exchange.bodyRead();
    expect(exchange.asksToClose).toBe(true);
    expect(exchange.finish() && client.closed).toBe(true);
  });

  it('is not, where it is answered before its body has been read: it would be reset', () => {
    const exchange = client.send({ 'transfer-encoding': 'chunked' });
    exchange.writeHead();
    exchange.bodyRead();
    exchange.finish();
    expect(exchange.asksToClose).toBe(false);
    expect([client.closed, client.connection.closeNotice?.sent]).toEqual([false, false]);
    // The next one is asked instead.
    expect(client.send().asksToClose).toBe(true);
  });
});

it('a request with an empty body is asked at once', () => {
  client.connection.leave();
  expect(client.use(1).send({ 'content-length': '0' }).asksToClose).toBe(true);
});

describe('a client that sends before it has its answers', () => {
  it('stays where its requests came in one piece, and each was answered at once', () => {
    client.connection.leave();
    client.use(1);
    // Nothing was read since the request before: it had been sent along with that.
    const exchange = client.parse().finish();
    expect(exchange.asksToClose).toBe(false);
    expect(client.connection.pipelines).toBe(true);
  });

  it('stays where a further request comes while the question can be taken back', () => {
    client.connection.leave();
    const asked = client.use(1).send();
    expect(asked.asksToClose).toBe(true);
    const behind = client.send();
    expect([asked.asksToClose, behind.asksToClose]).toEqual([false, false]);
    expect(client.connection.closeNotice).toBeUndefined();
    asked.finish();
    behind.finish();
    client.close();
    expect(server.tracker.rebalancedConnectionsTotal).toBe(0);
  });
});

describe('a drain', () => {
  it('asks with each response, also of a connection that was to leave, and counts no rebalancing', () => {
    client.connection.leave();
    server.tracker.closeAfterResponse();
    const exchange = client.send();
    expect(exchange.asksToClose).toBe(true);
    exchange.finish();
    expect(server.tracker.rebalancedConnectionsTotal).toBe(0);
  });

  it('takes it back from a response that another was sent behind', () => {
    const first = client.send();
    server.tracker.closeAfterResponse();
    expect(first.asksToClose).toBe(true);
    const second = client.send();
    expect([first.asksToClose, second.asksToClose]).toEqual([false, true]);
  });
});

describe('an HTTP/2 connection', () => {
  /** A request begins on the session; its response. */
  const request = (session: ReturnType<typeof server.openSession>, writableEnded = true) => {
    const answer = Object.assign(new EventEmitter(), { writableEnded });
    server.server.emit('request', { httpVersionMajor: 2, stream: { session } }, answer);
    return answer;
  };

  it('is left with its next request, by a GOAWAY that refuses no stream, and closed 250 ms later', () => {
    const session = server.openSession(client);
    client.connection.leave();
    expect(session.goaways).toEqual([]);
    request(session);
    request(session);
    expect(session.goaways).toEqual([[0, 2 ** 31 - 1]]);
    expect(client.connection.movable).toBe(false);
    vi.advanceTimersByTime(249);
    expect(session.closed).toBe(false);
    vi.advanceTimersByTime(1);
    expect(session.closed).toBe(true);
    client.close();
    expect(server.tracker.rebalancedConnectionsTotal).toBe(1);
  });

  it('counts the requests of its session, which are its load, and none that was cancelled as answered', () => {
    const session = server.openSession(client);
    const [answer, cancelled] = [request(session), request(session, false)];
    expect([client.connection.countRecent(), server.tracker.requestsInFlight]).toEqual([0, 2]);
    answer.emit('close');
    cancelled.emit('close');
    expect([client.connection.countRecent(), server.tracker.requestsTotal]).toEqual([2, 1]);
    expect(server.tracker.requestsInFlight).toBe(0);
  });

  it('may stay where no request has come since', () => {
    const session = server.openSession(client);
    client.connection.leave();
    client.connection.stay();
    request(session);
    expect(client.connection.movable).toBe(true);
    expect(session.goaways).toEqual([]);
  });

  it('is told of a drain once, and not before a request on it', () => {
    const [busy, idle] = [server.openSession(client), server.openSession(client)];
    request(busy);
    server.tracker.closeAfterResponse();
    expect([busy.goaways.length, idle.goaways.length]).toEqual([1, 0]);
    request(busy);
    request(idle);
    expect([busy.goaways.length, idle.goaways.length]).toEqual([1, 1]);
  });

  it.each(['closed', 'destroyed'] as const)('that is %s already is not told', (state) => {
    const session = server.openSession(client);
    session[state] = true;
    client.connection.leave();
    expect(() => request(session)).not.toThrow();
    expect(session.goaways).toEqual([]);
  });
});

it('a connection whose client goes away has no request in flight any more', () => {
  client.send();
  client.send();
  expect(server.tracker.requestsInFlight).toBe(2);
  client.close();
  expect(server.tracker).toMatchObject({ requestsInFlight: 0, openConnections: 0 });
});
