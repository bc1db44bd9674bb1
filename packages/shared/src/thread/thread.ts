import { chmodSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { PackageThreadData } from 'nestjs-cluster/extension';
import { FrameSocket } from '../wire/frame-socket.js';
import { type FromHub, HUB_VERSION, type Peer, type ToHub } from '../wire/protocol.js';
import { HubCore, SWEEP_MS } from './hub-core.js';

/** How long workers can reclaim their locks after the previous hub has ended. */
const RECLAIM_MS = 2_000;

/** Maximum number of bytes unread by a worker. Beyond this, the worker's requests are refused. */
const MAX_UNREAD_BYTES = 48 * 1024 * 1024;

/** Listens for workers, in a directory that only this user can access. */
export function listenForWorkers({ path, restarted }: PackageThreadData): Promise<Server> {
  const core = new HubCore(restarted ? RECLAIM_MS : 0);
  if (restarted) setTimeout(() => core.open(), RECLAIM_MS);
  setInterval(() => core.sweep(), SWEEP_MS).unref();
  let number = 0;
  const server = createServer((socket) => serve(socket, core, (number += 1)));
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      chmodSync(path, 0o600);
      server.on('error', () => {}); // without free descriptors, the server accepts connections later
      resolve(server);
    });
  });
}

function serve(socket: Socket, core: HubCore, number: number): void {
  let isKnown = false;
  const peer: Peer = {
    number,
    slot: -1,
    leaving: false,
    get unsentBytes() {
      return frames.unsentBytes;
    },
    /** Refuses the request if its answer is too large or the worker does not read. */
    send: (frame: FromHub, payload?: Buffer): void => {
      let why = 'the worker is not reading its answers';
      try {
        if (frames.send(frame, payload)) return;
      } catch (error) {
        why = `the answer is too large: ${(error as Error).message}`;
      }
      if ('id' in frame) frames.send({ t: 'refused', id: frame.id, why }, undefined, true);
    },
  };
  const handshake = (message: ToHub): void => {
    if (message.op !== 'hello') throw new Error('not a worker');
    isKnown = message.v === HUB_VERSION;
    peer.slot = message.slot;
    if (isKnown) return peer.send({ t: 'welcome', id: message.id });
    const why = `the hub uses protocol version ${HUB_VERSION}, but the worker uses version ${message.v}; restart the cluster after updating @nestjs-cluster/shared`;
    peer.send({ t: 'refused', id: message.id, why });
  };
  const frames = new FrameSocket(
    socket,
    ({ header, body }) => {
      const message = header as ToHub;
      if (!isKnown) handshake(message);
      else if (message.op !== 'hello') core.receive(peer, message, body);
    },
    () => core.leave(peer),
    MAX_UNREAD_BYTES,
  );
}

if (!isMainThread && parentPort && (workerData as Partial<PackageThreadData> | null)?.path) {
  // An error ends the thread, and the primary logs the error.
  void listenForWorkers(workerData as PackageThreadData).then(() => parentPort!.postMessage(null));
}
