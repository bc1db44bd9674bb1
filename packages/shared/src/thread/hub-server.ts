import { chmodSync, renameSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { machineNow } from '../machine.js';
import { memoryBytes } from '../machine.js';
import { type Frame, FrameSocket } from '../wire/frame-socket.js';
import { HUB_VERSION } from '../wire/limits.js';
import type { FromHub, ToHub } from '../wire/protocol.js';
import { HubCore } from './hub-core.js';
import type { Peer } from './services/peer.js';

/** Maximum number of connections. A worker needs one connection, so a slot needs two during a reload. */
const MAX_CONNECTIONS = 1_024;

/** A connection without a `hello` within this time is closed. */
const HELLO_MS = 5_000;

const SWEEP_MS = 1_000;

/** How long workers can reclaim their locks after the previous hub has ended. */
export const RECLAIM_MS = 2_000;

export interface HubServerOptions {
  readonly path: string;
  readonly token: string;
  readonly instance: string;
  /** Whether a previous hub has ended. */
  readonly restarted: boolean;
}

export interface HubListening {
  readonly server: Server;
  /** Listens at another path after the socket's file was removed. Open connections stay open. */
  readonly move: (path: string) => Promise<Server>;
}

/** Listens for workers, in a directory that only this user can enter. */
export async function listenForWorkers(options: HubServerOptions): Promise<HubListening> {
  const closedUntil = options.restarted ? machineNow() + RECLAIM_MS : undefined;
  const core = new HubCore(closedUntil, undefined, memoryBytes());
  if (options.restarted) void delay(RECLAIM_MS).then(() => core.open());
  setInterval(() => core.sweep(), SWEEP_MS).unref();
  let server = await listenAt(options.path, (socket) => serve(socket, core, options));
  const move = async (path: string): Promise<Server> => {
    const next = await listenAt(path, (socket) => serve(socket, core, options));
    server.close(); // its socket file was removed
    return (server = next);
  };
  return { server, move };
}

async function listenAt(path: string, onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer(onConnection);
  server.maxConnections = MAX_CONNECTIONS;
  // Renames the socket once it listens, so it replaces the previous hub's socket when it is ready.
  const hidden = join(dirname(path), `.${Math.random().toString(16).slice(2, 8)}`);
  await new Promise<void>((resolve, reject) => {
    // The message leaves out the random path, because workers log the same message only once.
    server.once('error', ({ code, message }: NodeJS.ErrnoException) =>
      reject(new Error(`no socket can be made in ${dirname(path)}: ${code ?? message}`)),
    );
    server.listen(hidden, resolve);
  });
  chmodSync(hidden, 0o600);
  renameSync(hidden, path);
  server.on('error', () => {}); // without free descriptors, the server accepts connections later
  return server;
}

function serve(socket: Socket, core: HubCore, { token, instance }: HubServerOptions): void {
  const onFrame = ({ header, body }: Frame): void => {
    const message = header as ToHub; // nothing of it is used before the token has been compared
    if (frames.isKnown) {
      if (message.op !== 'hello') core.receive(peer, message, body);
      return;
    }
    if (message?.op !== 'hello' || message.token !== token) throw new Error('not a known worker');
    if (message.v !== HUB_VERSION) {
      const why = `this hub speaks version ${HUB_VERSION}, the worker ${message.v}; restart the cluster after an update of nestjs-cluster`;
      frames.send({ t: 'refused', id: message.id, why });
      return;
    }
    clearTimeout(timer);
    frames.isKnown = true;
    peer.slot = message.slot;
    frames.send({ t: 'welcome', id: message.id, instance });
  };
  /** If an answer does not fit, refuses the request instead. */
  const send = (frame: FromHub, payload?: Buffer): void => {
    let why = 'the worker does not read its answers';
    try {
      if (frames.send(frame, payload)) return;
    } catch (error) {
      why = `the answer is too large: ${(error as Error).message}`;
    }
    if ('id' in frame) frames.send({ t: 'refused', id: frame.id, why });
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
