import { closeSync, openSync } from 'node:fs';
import net from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { inodeOf } from '../../../../src/contract/process/accept-queue.js';
import type { BoundSocket } from '../../../../src/primary/listening/bound-socket.js';
import { acceptBacklog } from '../../../../src/primary/take-snapshot.js';

async function listening(): Promise<{ socket: BoundSocket; port: number }> {
  const server = net.createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const { fd } = (server as unknown as { _handle: { fd: number } })._handle;
  const socket = { inode: inodeOf(fd), url: 'http://127.0.0.1:3000' } as BoundSocket;
  return { socket, port: (server.address() as net.AddressInfo).port };
}

/** Connects, and returns before this event loop accepts a connection. */
async function connect(...ports: readonly number[]): Promise<void> {
  for (const port of ports) {
    const client = net.connect(port, '127.0.0.1').on('error', () => {});
    onTestFinished(() => void client.destroy());
  }
  // Node connects in the next tick. Over loopback, the connection exists when connect(2) returns.
  await new Promise<void>((resolve) => process.nextTick(resolve));
}

describe.runIf(process.platform === 'linux')('the accept backlog', () => {
  it('counts the connections that no process has accepted, by address', async () => {
    const [one, other] = [await listening(), await listening()];
    await connect(one.port, one.port, one.port, other.port);
    const { url } = one.socket;
    expect(acceptBacklog({ sockets: [one.socket] })).toEqual([{ socket: url, connections: 3 }]);
    // With reuse-port, several sockets have one address.
    expect(acceptBacklog({ sockets: [one.socket, other.socket] })).toEqual([
      { socket: url, connections: 4 },
    ]);
  });

  it('leaves out a socket that has no queue', () => {
    const file = openSync('/dev/null', 'r');
    onTestFinished(() => closeSync(file));
    const unix = { inode: inodeOf(file), url: 'unix:/run/app.sock' } as BoundSocket;
    const unbound = { inode: '4711', url: 'http://127.0.0.1:3000' } as BoundSocket;
    expect(acceptBacklog({ sockets: [unix, unbound] })).toEqual([]);
  });
});
