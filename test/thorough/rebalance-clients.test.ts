import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it, onTestFinished } from 'vitest';
import { ONE_ADAPTER } from '../support/adapters.js';
import { BalanceMetrics } from '../support/balance.js';
import { behaviour } from '../support/behaviour.js';
import { ClusterProcess, stopAll } from '../support/cluster-process.js';
import { eventually } from '../support/eventually.js';
import { RawClient } from '../support/raw-client.js';
import { StrictClients } from '../support/strict-clients.js';
import { WebSocketClient } from '../support/web-socket-client.js';

afterEach(stopAll);

function many<T>(count: number, one: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, one));
}

describe('while others are moved', () => {
  it('pipelined requests, WebSockets and event streams stay where they are', async () => {
    const cluster = await ClusterProcess.start({
      options: { workers: 1 },
      env: { ...behaviour('streams#everything'), TEST_ADAPTER: ONE_ADAPTER },
    });
    const { url } = cluster;
    const pipelining = StrictClients.forTest(url, { clients: 4, pauseMs: 20, pipelined: 3 });
    const plain = StrictClients.forTest(url, { clients: 20, pauseMs: 20 });
    const sockets = await many(4, () => WebSocketClient.open(url));
    let echoes = 0;
    let closedSockets = 0;
    for (const socket of sockets) {
      void socket.closed.then(() => (closedSockets += 1));
      void (async () => {
        for (;;) {
          const answer = socket.next();
          socket.send(JSON.stringify({ event: 'echo', data: 'still here' }));
          await answer;
          echoes += 1;
          await delay(10);
        }
      })();
    }
    const streams = await many(2, () => RawClient.open(url));
    let endedStreams = 0;
    for (const stream of streams) {
      stream.get('/sse');
      void stream.ended.then(() => (endedStreams += 1));
      onTestFinished(() => stream.destroy());
    }
    await Promise.all(streams.map((stream) => stream.until(/data: /)));
    const metrics = new BalanceMetrics(url);
    await eventually('all served', () => plain.served >= 40 && pipelining.served >= 8);
    expect([plain.opened, pipelining.opened]).toEqual([20, 4]);

    cluster.kill('SIGTTIN');

    await eventually(
      'some of the plain ones moved',
      () => ({ moved: plain.moved, faults: plain.faults }),
      ({ moved }) => moved >= 5,
    );
    // By now every client that was to move has been asked to, with its next response.
    const before = { echoes, pipelined: pipelining.served, text: streams.map(({ text }) => text) };
    await eventually(
      'all go on',
      () =>
        echoes >= before.echoes + 40 &&
        pipelining.served >= before.pipelined + 40 &&
        streams.every(({ text }, index) => text.length > before.text[index]!.length + 1_000),
    );
    await eventually(
      'the other worker serves',
      () => metrics.requests(1),
      (count) => count > 100,
    );
    expect([...plain.faults, ...pipelining.faults]).toEqual([]);
    expect([pipelining.moved, pipelining.opened]).toEqual([0, 4]);
    expect([closedSockets, endedStreams]).toEqual([0, 0]);
  });
});
