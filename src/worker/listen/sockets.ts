import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import http, { type Server } from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { onceEach } from '../../contract/errors/errors.js';
import { closeHandle } from '../../contract/messages.js';
import {
  emptyAndClose,
  LISTENING,
  type ListeningHandle,
} from '../../contract/process/accept-queue.js';
import type { RequestTracker } from '../serve/tracker.js';
import { listenOn } from './listen.js';

/** Maximum wait for the primary to close its sockets. The worker keeps accepting connections meanwhile. */
const PRIMARY_PATIENCE_MS = 5_000;

/**
 * All sockets that a worker listens on: the sockets of the app's HTTP server, of other servers in
 * the app (such as a WebSocket gateway with its own port), and of slots without a worker.
 */
export class WorkerSockets {
  readonly #limit: (server: net.Server) => void;
  #own: Server | undefined;
  /** The server for connections from adopted sockets. Set while the app listens. */
  #adopting: Server | undefined;
  /** The servers that listen on other slots' sockets, by slot number. */
  readonly #adopted = new Map<number, net.Server>();
  /** Set if the whole cluster ends: no other process will accept the connections in the backlogs. */
  #isLast = false;
  /** Set if systemd also holds the app's socket and keeps its backlog for the next process. */
  isHeldBySystemd = false;
  #isReleased = false;
  #release!: () => void;
  readonly #released = new Promise<void>((resolve) => (this.#release = resolve));

  constructor(
    private readonly tracker: RequestTracker,
    warn: (message: string) => void,
  ) {
    this.#limit = connectionLimit(tracker, warn);
    subscribe(LISTENING, this.#onListening);
  }

  /** Adds the app's HTTP server, which may not be listening yet. */
  add(server: Server): void {
    this.#own = server;
    this.tracker.follow(server);
  }

  stop(): void {
    unsubscribe(LISTENING, this.#onListening);
  }

  /** Called before a server accepts its first connection. */
  readonly #onListening = (message: unknown): void => {
    const { server } = message as { readonly server: unknown };
    if (!isHttpServer(server)) return;
    this.tracker.follow(server);
    this.#limit(server);
  };

  /** Called when the app listens. From now on, its server serves connections from adopted sockets. */
  mayAdopt(): void {
    this.#adopting = this.#own;
  }

  /** Also listens on the slot's socket. @param handle `undefined` if no descriptor was free. */
  adopt(slot: number, handle: unknown): void {
    const server = this.#adopting;
    if (server === undefined || this.#adopted.has(slot)) return closeHandle(handle);
    if (handle === undefined) return;
    const listener = net.createServer(connectionOptionsOf(server));
    this.#limit(listener);
    listener.on('connection', (socket) => server.emit('connection', socket));
    // Listening fails if the socket was closed in the meantime.
    listener.on('error', () => this.release(slot));
    this.#adopted.set(slot, listener);
    listenOn(listener, handle);
  }

  /** Serves a connection from another worker. It may already have carried requests. */
  take(handle: unknown): void {
    const server = this.#adopting;
    if (server === undefined) return closeHandle(handle);
    const options = { ...connectionOptionsOf(server), handle };
    server.emit('connection', new net.Socket(options as net.SocketConstructorOpts));
  }

  /**
   * From now on, idle connections move to another worker without a reconnect. TLS and HTTP/2
   * connections stay here, because their state cannot be moved.
   */
  handOver(send: (handle: unknown) => Promise<void>): void {
    const own = this.#own;
    if (!(own instanceof http.Server)) return;
    let sent = Promise.resolve(); // one at a time, so that other messages need not wait for all of them
    this.tracker.handOver = ({ socket }) => {
      const { _handle: handle, server } = socket as IdleSocket;
      if (server !== own || socket.writableLength > 0 || !handle) return false;
      handle.readStop(); // from now on, the other worker reads
      sent = sent.then(() => send(handle)).then(() => void socket.destroy());
      return true;
    };
  }

  /** Stops listening on the slot's socket. Its accepted connections stay open. */
  release(slot: number): void {
    this.#adopted.get(slot)?.close();
    this.#adopted.delete(slot);
  }

  /** Called if the whole cluster ends: no other process will serve the connections in the backlogs. */
  clusterEnds(): void {
    this.#isLast = true;
  }

  /** Called if only this process ends: other processes keep its sockets open. */
  clusterContinues(): void {
    if (!this.#isReleased) this.#isLast = false;
  }

  /** Called when the primary has closed its copies of all sockets. */
  primaryClosed(): void {
    this.#isReleased = true;
    this.#release();
  }

  /**
   * Closes all sockets. If another process or systemd also holds a socket, that process accepts the
   * connections in the backlog. Otherwise this process accepts them first.
   *
   * @param signal when aborted, ends the wait and closes the sockets immediately.
   * @param others further servers to close, such as the servers of TCP microservices.
   */
  async leave(signal: AbortSignal, others: readonly net.Server[]): Promise<void> {
    const kept = this.isHeldBySystemd ? this.#adopting : undefined;
    this.#adopting = undefined; // from now on, refuses sockets from the primary
    const servers = [...this.tracker.servers].filter(({ listening }) => listening);
    for (const server of servers) if (server !== this.#own) expectClose(server);
    const sockets = [...servers, ...this.#adopted.values(), ...others];
    const closing = this.#isLast ? sockets.filter((socket) => socket === kept) : sockets;
    for (const socket of closing) stopAccepting(socket);
    if (this.#isLast) await this.#emptyAndClose(sockets, signal);
  }

  /** Accepts the connections in the backlogs first. Several processes may do so at the same time. */
  async #emptyAndClose(sockets: readonly net.Server[], signal: AbortSignal): Promise<void> {
    // If the primary closed its sockets last, connections arriving in between would be reset.
    const patience = delay(PRIMARY_PATIENCE_MS, undefined, { signal }).catch(() => {});
    await Promise.race([this.#released, patience]);
    const listening = sockets.filter((server) => server.listening);
    await Promise.all(
      listening.map((server) => {
        const { _handle: handle } = server as unknown as { _handle: ListeningHandle };
        return emptyAndClose(handle, signal, () => stopAccepting(server));
      }),
    );
  }
}

/** Undocumented properties, set by Node 20 to 26. */
type IdleSocket = net.Socket & {
  readonly _handle?: { readStop(): void } | null;
  readonly server?: unknown;
};

/** The server's connection options. net.Server has properties of the same names. */
function connectionOptionsOf(server: net.Server & net.ServerOpts): net.ServerOpts {
  // The property is in seconds, the option in ms.
  const keepAliveInitialDelay = (server.keepAliveInitialDelay ?? 0) * 1_000;
  return Object.assign({}, server, { keepAliveInitialDelay });
}

function isHttpServer(server: unknown): server is Server {
  if (server instanceof http.Server || server instanceof https.Server) return true;
  // Only HTTP/2 servers have this method. node:http2 exports no server classes, and importing the
  // module would load it into every worker.
  return typeof (server as { updateSettings?: unknown }).updateSettings === 'function';
}

/**
 * Closes only the server's listening socket. `http.Server.close()` would also destroy idle
 * connections and stop the timeouts for slow requests (https://github.com/nodejs/node/issues/60617).
 */
function stopAccepting(server: net.Server): void {
  if (server.listening) net.Server.prototype.close.call(server);
}

/**
 * Replaces `server.close()`, which a shutdown hook of the app may call after we have closed the
 * socket. Node's method would report an error, because the server no longer listens. The replacement
 * only waits for the server's connections.
 */
function expectClose(server: net.Server): void {
  let closed = false;
  server.once('close', () => (closed = true));
  server.close = (callback) => {
    if (closed && callback) process.nextTick(callback);
    else if (callback) server.once('close', () => callback());
    return server;
  };
}

/** File descriptors reserved for the rest of the process: the smaller of a number and a ratio. */
const MAX_RESERVE = 1_024;
const MAX_RESERVE_RATIO = 0.25;

/** Properties that Node's types lack. */
type ListeningServer = net.Server & { dropMaxConnection?: boolean; readonly _handle?: unknown };

const NODE_MAJOR = Number(process.versions.node.split('.')[0]);

/**
 * Returns a function that limits a server's connections, so that the process does not run out of
 * file descriptors. An app's own `maxConnections` takes precedence.
 *
 * @param warn called when the first connection is refused.
 */
export function connectionLimit(
  tracker: Pick<RequestTracker, 'droppedConnections'>,
  warn: (message: string) => void,
  openFiles = openFilesLimit(),
): (server: ListeningServer) => void {
  const max = openFiles - Math.min(Math.ceil(openFiles * MAX_RESERVE_RATIO), MAX_RESERVE);
  const warnOnce = onceEach(warn);
  return (server) => {
    if (server.maxConnections !== undefined || max === Infinity) return;
    // If node:cluster distributes connections and all workers are full, Node 20 passes a refused
    // connection from worker to worker forever. From Node 22.12 on, a worker can drop it.
    if (isHandedConnections(server) && NODE_MAJOR < 22) return;
    server.maxConnections = max;
    server.dropMaxConnection = true;
    server.on('drop', () => {
      tracker.droppedConnections += 1;
      warnOnce(
        `connections are refused: ${max} are open, and the process is limited to ${openFiles} open files and sockets; raise the limit (ulimit -n, or LimitNOFILE= in the systemd unit)`,
      );
    });
  };
}

/**
 * The maximum number of open files and sockets of this process. This is the soft limit, which Node
 * raises to the hard limit at startup. `Infinity` without a limit, and on a system without /proc.
 */
export function openFilesLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}

/** Whether node:cluster distributes the server's connections. The handle is then a plain object. */
function isHandedConnections({ _handle: handle }: ListeningServer): boolean {
  const isObject = typeof handle === 'object' && handle !== null;
  return isObject && Object.getPrototypeOf(handle) === Object.prototype;
}
