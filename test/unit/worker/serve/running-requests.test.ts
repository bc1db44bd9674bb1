import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RequestTracker } from '../../../../src/worker/serve/tracker.js';
import { runningRequests } from '../../../../src/worker/serve/request-scope.js';
import { FakeServer } from '../../support/fake-traffic.js';

let server: FakeServer;
beforeEach(() => {
  vi.useFakeTimers();
  server = new FakeServer();
});
afterEach(() => {
  server.tracker.scopes.follow(false);
  server.stop();
});

const described = (url: string, method = 'GET') =>
  runningRequests({
    inFlight: [{ request: { method, url }, response: {} as never, startedAt: performance.now() }],
    scopes: new RequestTracker().scopes,
  })[0];

describe('the requests that may end a worker', () => {
  it('are those in flight, the newest first, each with its time', () => {
    server.connect().send();
    vi.advanceTimersByTime(2_000);
    server.connect().send();
    vi.advanceTimersByTime(7);
    server.connect().send().finish();
    expect(runningRequests(server.tracker)).toEqual([
      { method: 'GET', path: '/cats', forMs: 7 },
      { method: 'GET', path: '/cats', forMs: 2_007 },
    ]);
  });

  it('are the ten newest, without streams of events', () => {
    const stream = server.connect().send();
    stream.setHeader('Content-Type', 'text/event-stream').writeHead();
    for (let n = 0; n < 12; n += 1) {
      server.connect().send();
      vi.advanceTimersByTime(1);
    }
    expect(runningRequests(server.tracker).map(({ forMs }) => forMs)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ]);
  });

  it('are the one in whose context the code runs, also when it is answered', () => {
    server.tracker.scopes.follow(true);
    server.connect().send();
    vi.advanceTimersByTime(50);
    const own = server.connect().send();
    vi.advanceTimersByTime(5);
    expect(runningRequests(server.tracker)).toMatchObject([{ forMs: 5 }]);
    own.finish();
    vi.advanceTimersByTime(5);
    expect(runningRequests(server.tracker)).toMatchObject([{ path: '/cats', forMs: 10 }]);
  });

  it.each([
    ['/cats/7?token=secret', '/cats/7'],
    ['http://user:secret@host/cats/7?token=secret', '/cats/7'],
    ['//host/cats', '//host/cats'],
    ['*', '*'],
    [`/${'x'.repeat(500)}`, `/${'x'.repeat(199)}`],
  ])('are named by method and path, without what may be secret: %s', (url, path) => {
    expect(described(url, 'POST')).toMatchObject({ method: 'POST', path });
  });
});
