import { afterEach, describe, expect, it } from 'vitest';
import type { ServerResponse } from 'node:http';
import { FakeServer } from './fake-traffic.js';

const servers: FakeServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.stop();
});

function start() {
  const server = new FakeServer();
  servers.push(server);
  const observed: ServerResponse[] = [];
  server.tracker.observeRequests((response) => observed.push(response));
  return { server, observed };
}

describe('whoever observes requests', () => {
  it('is told of each with its response, when it begins', () => {
    const { server, observed } = start();
    const client = server.connect();
    const first = client.send();
    expect(observed).toEqual([first.response]);
    first.finish();
    const second = client.send();
    expect(observed).toEqual([first.response, second.response]);
    expect(observed[1]).toBe(second.response);
  });

  it('is told of each that is pipelined', () => {
    const { server, observed } = start();
    const client = server.connect();
    const exchanges = [client.send(), client.parse(), client.parse()];
    expect(observed).toHaveLength(3);
    expect(exchanges.every(({ response }, i) => observed[i] === response)).toBe(true);
  });

  it('is told while the request counts as one in flight', () => {
    const { server } = start();
    const inFlight: number[] = [];
    server.tracker.observeRequests(() => inFlight.push(server.tracker.requestsInFlight));
    server.connect().send().finish();
    server.connect().send();
    expect(inFlight).toEqual([1, 1]);
  });

  it('is not told of those of another server, or of one that is no longer followed', () => {
    const { server, observed } = start();
    const other = new FakeServer();
    servers.push(other);
    other.connect().send();
    expect(observed).toEqual([]);
    server.stop();
    server.connect().send();
    expect(observed).toEqual([]);
  });

  it('is one at most: the last', () => {
    const { server, observed } = start();
    let told = 0;
    server.tracker.observeRequests(() => (told += 1));
    server.connect().send();
    expect([told, observed.length]).toEqual([1, 0]);
  });

  it('stands beside whoever observes responses', () => {
    const { server, observed } = start();
    const answered: unknown[] = [];
    server.tracker.observe({
      finished: (_request, response) => answered.push(response),
      aborted: () => {},
    });
    const exchange = server.connect().send();
    expect(answered).toEqual([]);
    exchange.finish();
    expect([observed, answered]).toEqual([[exchange.response], [exchange.response]]);
  });
});
