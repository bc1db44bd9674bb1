import { afterEach, expect, it } from 'vitest';
import { behaviour } from '../../../../test/support/behaviour.js';
import { ClusterProcess, stopAll } from '../../../../test/support/cluster-process.js';
import { eventually } from '../../../../test/support/eventually.js';
import { WebSocketClient } from '../../../../test/support/web-socket-client.js';

const WORKERS = 3;
const MESSAGES = 100;

afterEach(stopAll);

/** The pid that a worker sends in its first message. */
const pidOf = ({ received }: WebSocketClient): unknown =>
  received[0] && (JSON.parse(received[0]) as { data: unknown }).data;

it('a broadcast of the ws adapter reaches the clients of all workers, in one order', async () => {
  const cluster = await ClusterProcess.start({
    options: { workers: WORKERS, control: false, balancing: 'round-robin' },
    env: behaviour('ws-broadcast'),
  });
  const clients = await Promise.all(
    Array.from({ length: 2 * WORKERS }, () => WebSocketClient.open(cluster.url)),
  );
  await eventually('all know their worker', () => clients.every(pidOf));
  expect(new Set(clients.map(pidOf)).size).toBe(WORKERS);
  for (let number = 0; number < MESSAGES; number += 1) {
    clients[number % 2]!.send(JSON.stringify({ event: 'all', data: number }));
  }
  await eventually('all have all', () =>
    clients.every(({ received }) => received.length > MESSAGES),
  );
  const first = clients[0]!.received.slice(1);
  expect(first.toSorted()).toEqual(
    Array.from({ length: MESSAGES }, (_, data) => JSON.stringify({ event: 'price', data })).sort(),
  );
  for (const { received } of clients) expect(received.slice(1)).toEqual(first);
});
