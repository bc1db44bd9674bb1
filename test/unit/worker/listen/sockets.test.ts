import { once } from 'node:events';
import http from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { WorkerSockets } from '../../../../src/worker/listen/sockets.js';
import { RequestTracker } from '../../../../src/worker/serve/tracker.js';

async function start() {
  const tracker = new RequestTracker();
  const sockets = new WorkerSockets(tracker, () => {});
  onTestFinished(() => {
    sockets.stop();
    tracker.unfollow();
  });
  const server = http.createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return { sockets, server };
}

it.each([
  { holder: 'nobody else', listens: 1 },
  // A shorter accept queue, or a connection in it, would reach the next start of the cluster.
  { holder: 'systemd', listens: 0 },
])(
  'shortens the queue of a socket to empty it: $listens times if $holder holds the socket',
  async ({ holder, listens }) => {
    const { sockets, server } = await start();
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

it('serves the connections of an adopted socket until the socket is released', async () => {
  const { sockets, server } = await start();
  sockets.add(server);
  sockets.mayAdopt();
  const other = net.createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  sockets.adopt(1, Reflect.get(other, '_handle'));
  const served = once(server, 'connection');
  net.connect(port, '127.0.0.1').unref().end();
  await served;

  sockets.release(1);

  const late = net.connect(port, '127.0.0.1');
  onTestFinished(() => void late.destroy());
  await expect(once(late, 'connect')).rejects.toThrow('ECONNREFUSED');
});

it('serves a connection of another worker once the app listens, and closes an earlier one', async () => {
  const { sockets, server } = await start();
  const taken: Socket[] = [];
  server.on('connection', (socket) => taken.push(socket));
  sockets.add(server);
  /** The part of a connection's handle that Node uses. */
  const connection = () => ({ close: vi.fn(), readStart: () => 0, getAsyncId: () => 1 });
  const [early, late] = [connection(), connection()];
  sockets.take(early);
  expect([early.close.mock.calls.length, taken]).toEqual([1, []]);
  sockets.mayAdopt();
  sockets.take(late);
  expect(late.close).not.toHaveBeenCalled();
  expect(taken.map((socket) => Reflect.get(socket, '_handle') as unknown)).toEqual([late]);
  taken[0]!.destroy();
});
