import { once } from 'node:events';
import net, { type AddressInfo } from 'node:net';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  AcceptQueue,
  type ListeningHandle,
} from '../../../../src/contract/process/accept-queue.js';

/** A client in a thread: it connects while this one is in the middle of something. */
const CLIENT = `
  const { parentPort, workerData } = require('node:worker_threads');
  parentPort.once('message', ({ port, host, state }) => {
    const told = new Int32Array(state);
    const tell = (what) => { Atomics.store(told, 0, what); Atomics.notify(told, 0); };
    require('node:net').connect(port, host, () => tell(1)).on('error', () => tell(2));
  });
  parentPort.postMessage('ready');
`;
const [CONNECTED, REFUSED] = [1, 2];

/** Longer than a connection on loopback takes; shorter than a second SYN. */
const WAIT_MS = 300;

async function client(port: number, host: string) {
  const thread = new Worker(CLIENT, { eval: true });
  onTestFinished(() => void thread.terminate());
  await once(thread, 'message');
  const state = new SharedArrayBuffer(4);
  /** Connects, and waits for it without a turn of this event loop. */
  return (): number => {
    thread.postMessage({ port, host, state });
    const told = new Int32Array(state);
    Atomics.wait(told, 0, 0, WAIT_MS);
    return Atomics.load(told, 0);
  };
}

describe.runIf(process.platform === 'linux')('a listening socket that is closed', () => {
  it.each(['127.0.0.1', '::1', '0.0.0.0', '::'])(
    'at %s has nobody join its queue at the last moment, to be reset',
    async (host) => {
      const server = net.createServer((socket) => socket.on('error', () => {}));
      await once(server.listen(0, host), 'listening');
      const { port } = server.address() as AddressInfo;
      const connect = await client(port, host.includes(':') ? '::1' : '127.0.0.1');
      const handle = (server as unknown as { _handle: ListeningHandle })._handle;
      let outcome: number | undefined;
      const reset = await new AcceptQueue(handle).emptyAndClose(
        new AbortController().signal,
        () => {
          outcome = connect();
          server.close();
        },
      );
      expect(reset).toBe(0);
      expect(outcome).not.toBe(CONNECTED);
      expect(outcome).not.toBe(REFUSED); // it listens still: who asks again is told
    },
  );
});
