import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { choose, Rebalance } from '../../../../src/worker/link/rebalance.js';
import { type FakeClient, FakeServer } from '../../support/fake-traffic.js';

/** The cumulative times of the event loop, in milliseconds, as Node returns them. */
let loop = { idle: 0, active: 0 };

beforeEach(() => {
  loop = { idle: 0, active: 0 };
  vi.spyOn(performance, 'eventLoopUtilization').mockImplementation((now, before) => {
    const current = now ?? loop;
    const idle = current.idle - (before?.idle ?? 0);
    const active = current.active - (before?.active ?? 0);
    return {
      idle: current.idle,
      active: current.active,
      utilization: active / (idle + active || 1),
    };
  });
});

let server: FakeServer;
let rebalance: Rebalance;

beforeEach(() => {
  server = new FakeServer();
  rebalance = new Rebalance(server.tracker);
});
afterEach(() => server.stop());

const connect = (count: number) => Array.from({ length: count }, () => server.connect());

it.each([
  [0.5, [10, 10, 10, 10], [10, 10]],
  [0.25, [10, 10, 10, 10], [10]],
  [0.2, [10, 10, 10, 10], []],
  [0, [10, 10], []],
  [1, [3, 1, 2], [3, 2, 1]],
  [NaN, [10, 10], []],
  // The busiest first, so that the fewest clients have to connect again.
  [0.5, [1, 2, 3, 4, 10], [10]],
  [0.5, [1, 5, 4, 2], [5, 1]],
  // None that alone is more: its load would go with it.
  [0.5, [100, 5, 5], [5, 5]],
  // None without requests: it has no load.
  [1, [0, 5, 0], [5]],
])('gives away at most the share %d of the load: of %j the connections %j', (ratio, from, to) => {
  const connections = from.map((recentRequests) => ({ recentRequests }));
  expect(choose(connections, ratio).map(({ recentRequests }) => recentRequests)).toEqual(to);
});

describe('what a worker reports', () => {
  it('is what it has carried since it was last asked', () => {
    const [a, b] = connect(2);
    a!.use(3);
    b!.use(2);
    loop = { idle: 75, active: 25 };
    expect(rebalance.report()).toEqual({ requests: 5, connections: 2, utilization: 0.25 });

    b!.use(4);
    loop = { idle: 85, active: 115 };
    expect(rebalance.report()).toEqual({ requests: 4, connections: 1, utilization: 0.9 });
    expect(rebalance.report()).toMatchObject({ requests: 0, connections: 0 });
  });

  it('counts no connection that cannot be given away', () => {
    const [webSocket, pipelining, leaving, plain] = connect(4);
    for (const client of [webSocket!, pipelining!, leaving!, plain!]) client.use(1);
    webSocket!.connection.webSocket = true;
    pipelining!.connection.pipelines = true;
    leaving!.connection.leave();
    expect(rebalance.report()).toMatchObject({ requests: 4, connections: 1 });
  });
});

describe('giving away', () => {
  /** Clients with so many requests each, which the worker has reported. */
  function reported(...requests: number[]) {
    const clients = connect(requests.length);
    clients.forEach((client, index) => client.use(requests[index]!));
    rebalance.report();
    return clients as [FakeClient, ...FakeClient[]];
  }
  const movable = (clients: readonly FakeClient[]) =>
    clients.map(({ connection }) => connection.movable);

  it('takes the share of the load that was reported last, and asks each client but one request later', () => {
    const clients = reported(10, 10, 10, 10);
    rebalance.giveAway(0.5);
    expect(movable(clients).filter((may) => !may)).toHaveLength(2);
    for (const client of clients) client.use(2);
    expect(clients.filter(({ closed }) => closed)).toHaveLength(2);
    expect(server.tracker).toMatchObject({ rebalancedConnectionsTotal: 2, openConnections: 2 });
  });

  it('lets go of who was chosen before and has not been asked', () => {
    const [a, b] = reported(10, 5);
    rebalance.giveAway(0.7);
    expect(movable([a, b!])).toEqual([false, true]);
    b!.use(10);
    rebalance.report();
    rebalance.giveAway(0);
    expect(movable([a, b!])).toEqual([true, true]);
    a.use(5);
    expect(a.closed).toBe(false);
  });

  it('does not choose again who has been asked already', () => {
    const [a, b] = reported(10, 9);
    rebalance.giveAway(0.6);
    a.use(1);
    const asked = a.send();
    expect(asked.asksToClose).toBe(true);
    b!.use(9);
    rebalance.report();
    rebalance.giveAway(1);
    const sent = [a, b!].map(({ connection }) => connection.closeNotice?.sent);
    expect(sent).toEqual([true, false]);
    asked.finish();
    expect(server.tracker.rebalancedConnectionsTotal).toBe(1);
  });
});
