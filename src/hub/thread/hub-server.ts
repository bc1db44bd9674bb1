import { chmodSync, renameSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { memoryBytes } from '../../contract/options/check/cgroup.js';
import { FrameSocket } from '../wire/frame-socket.js';
import { HubCore, type Peer } from '../wire/hub-core.js';
import { machineMs } from '../wire/machine-clock.js';
import { type FromHub, HUB_VERSION, MAX_BODY_BYTES, readToHub } from '../wire/protocol.js';
import { type Frame, tooLarge } from '../wire/codec.js';

/** One for each worker, and for those of a reload one more. */
const MAX_CONNECTIONS = 1_024;

/** A connection that has not said by then who it is. */
const HELLO_MS = 5_000;

const SWEEP_MS = 1_000;

/** After a hub that ended: workers connect again, and say which locks they hold. */
export const RECLAIM_MS = 2_000;

const UNKNOWN =
  'the hub does not know such a request; a name or a key is a string of at most 16,384 characters';

export interface HubServerOptions {
  readonly path: string;
  readonly token: string;
  readonly instance: string;
  /** There was one before, which has ended. */
  readonly restarted: boolean;
}

export interface HubListening {
  readonly server: Server;
  /** Has who comes from now on connect there: the first socket was removed. Those who have come stay. */
  readonly move: (path: string) => Promise<Server>;
}

/** Listens for workers, in a directory that nobody but this user can enter. */
export async function listenForWorkers(options: HubServerOptions): Promise<HubListening> {
  const closedUntil = options.restarted ? machineMs() + RECLAIM_MS : undefined;
  const core = new HubCore(closedUntil, undefined, memoryBytes());
  if (options.restarted) void delay(RECLAIM_MS).then(() => core.open());
  setInterval(() => core.sweep(), SWEEP_MS).unref();
  let server = await listenAt(options.path, (socket) => serve(socket, core, options));
  const move = async (path: string): Promise<Server> => {
    const next = await listenAt(path, (socket) => serve(socket, core, options));
    server.close(); // nobody finds it
    return (server = next);
  };
  return { server, move };
}

async function listenAt(path: string, onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer(onConnection);
  server.maxConnections = MAX_CONNECTIONS;
  // Beside its path, and moved there: it is never seen before it answers, and takes the place of that of the hub before it.
  const beside = join(dirname(path), `.${Math.random().toString(16).slice(2, 8)}`);
  await new Promise<void>((resolve, reject) => {
    // Without the path, which is another one each time: workers warn of each reason once.
    server.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      reject(new Error(`no socket can be made in ${dirname(path)}: ${code ?? message}`)),
    );
    server.listen(beside, resolve);
  });
  chmodSync(beside, 0o600);
  renameSync(beside, path);
  server.on('error', () => {}); // for want of descriptors it accepts later
  return server;
}

function serve(socket: Socket, core: HubCore, { token, instance }: HubServerOptions): void {
  let welcome = false;
  const onFrame = ({ header, body, skippedBytes }: Frame): void => {
    if (skippedBytes !== undefined) return refuseUnread(header, tooLarge(skippedBytes));
    if (body.length > MAX_BODY_BYTES) {
      return refuseUnread(header, tooLarge(body.length, MAX_BODY_BYTES));
    }
    const said = readToHub(header);
    if (said === undefined) return refuseUnread(header, UNKNOWN);
    if (welcome) {
      if (said.op !== 'hello') core.receive(peer, said, body);
      return;
    }
    if (said.op !== 'hello' || said.token !== token) throw new Error('it has not said who it is');
    if (said.v !== HUB_VERSION) {
      const why = `this hub speaks version ${HUB_VERSION}, the worker ${said.v}; restart the cluster after an update of nestjs-cluster`;
      frames.send({ t: 'refused', id: said.id, why });
      return;
    }
    clearTimeout(timer);
    welcome = true;
    peer.slot = said.slot;
    frames.send({ t: 'welcome', id: said.id, instance });
  };
  /** A request that is not as it should be is no reason to lose the others. @throws Error before the first. */
  const refuseUnread = (header: unknown, why: string): void => {
    if (!welcome) throw new Error('this is no request');
    const { id } = (header ?? {}) as { id?: unknown };
    if (typeof id === 'number') frames.send({ t: 'refused', id, why });
  };
  /** A worker that does not read its answers, and has no room for this one, is told so. */
  const send = (frame: FromHub, payload?: Buffer): void => {
    if (frames.send(frame, payload) || !('id' in frame)) return;
    frames.send({ t: 'refused', id: frame.id, why: 'the worker does not read its answers' });
  };
  const frames = new FrameSocket(socket, {
    frame: onFrame,
    closed: () => {
      clearTimeout(timer);
      core.leave(peer);
    },
    drained: () => core.drained(peer),
  });
  const timer = setTimeout(() => socket.destroy(), HELLO_MS);
  const peer: Peer = {
    slot: -1,
    get congested() {
      return frames.congested;
    },
    get unsentBytes() {
      return frames.unsentBytes;
    },
    send,
  };
}
