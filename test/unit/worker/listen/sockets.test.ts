import { once } from 'node:events';
import http from 'node:http';
import { expect, it, onTestFinished, vi } from 'vitest';
import { WorkerSockets } from '../../../../src/worker/listen/sockets.js';
import { RequestTracker } from '../../../../src/worker/serve/tracker.js';

it.each([
  { holder: 'nobody else', listens: 1 },
  // A shorter accept queue, or a connection in it, would reach the next start of the cluster.
  { holder: 'systemd', listens: 0 },
])(
  'shortens the queue of a socket to empty it: $listens times if $holder holds the socket',
  async ({ holder, listens }) => {
    const tracker = new RequestTracker();
    const sockets = new WorkerSockets(tracker, () => {});
    onTestFinished(() => {
      sockets.stop();
      tracker.unfollow();
    });
    const server = http.createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    sockets.add(server);
    sockets.mayAdopt();
    if (holder === 'systemd') sockets.isHeldBySystemd = true;
    sockets.clusterEnds();
    sockets.primaryClosed();
    const { _handle: handle } = server as unknown as {
      _handle: { listen(backlog: number): number };
    };
    const listen = vi.spyOn(handle, 'listen');

    await sockets.leave(new AbortController().signal, []);
    expect(server.listening).toBe(false);
    expect(listen).toHaveBeenCalledTimes(listens);
  },
);
