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

/** Maximum wait for the primary to close its sockets. New connections are served during the wait. */
const PRIMARY_PATIENCE_MS = 5_000;

/**
 * All sockets that a worker listens on: of its HTTP servers, and of slots without a worker. The HTTP
 * servers are the app's own, and those that the app made in addition, such as a server that only
 * redirects or a WebSocket gateway with its own port.
 */
export class WorkerSockets {
  readonly #limit: (server: net.Server) => void;
  #own: Server | undefined;
  /** The server that gets the connections of adopted sockets. Set while the app listens. */
  #adopting: Server | undefined;
  /** The servers that listen on other slots' sockets, by slot number. */
  readonly #adopted = new Map<number, net.Server>();
  /** Whether the whole cluster ends, so that no other process will accept from these sockets. */
  #isLast = false;
  /** Whether systemd holds the app's socket too, and keeps its queue for the next process. */
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

  /** Adds the app's own server, which may not be listening yet. */
  add(server: Server): void {
    this.#own = server;
    this.tracker.follow(server);
  }

  stop(): void {
    unsubscribe(LISTENING, this.#onListening);
  }

  /** Called before the server accepts its first connection. */
  readonly #onListening = (message: unknown): void => {
    const { server } = message as { readonly server: unknown };
    if (!isHttpServer(server)) return;
    this.tracker.follow(server);
    this.#limit(server);
  };

  /** The app listens: connections from adopted sockets go to its server from now on. */
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
    // Listening fails if the socket was closed in the meantime. In this case the slot is released.
    listener.on('error', () => this.release(slot));
    this.#adopted.set(slot, listener);
    listenOn(listener, handle);
  }

  /** Serves a connection that another worker has accepted, which may have been used before. */
  take(handle: unknown): void {
    const server = this.#adopting;
    if (server === undefined) return closeHandle(handle);
    const options = { ...connectionOptionsOf(server), handle };
    server.emit('connection', new net.Socket(options as net.SocketConstructorOpts));
  }

  /**
   * Sends idle connections to another worker from now on, so that their clients notice nothing. The
   * state of TLS and HTTP/2 is in this process, so such connections stay here.
   */
  handOver(send: (handle: unknown) => Promise<void>): void {
    const own = this.#own;
    if (!(own instanceof http.Server)) return;
    let sent = Promise.resolve(); // one at a time, so that other messages do not wait behind many
    this.tracker.handOver = ({ socket }) => {
      const { _handle: handle, server } = socket as IdleSocket;
      if (server !== own || socket.writableLength > 0 || !handle) return false;
      handle.readStop(); // the other worker reads what the client sends from now on
      sent = sent.then(() => send(handle)).then(() => void socket.destroy());
      return true;
    };
  }

  /** Stops accepting from the slot's socket. Connections that were accepted from it stay open. */
  release(slot: number): void {
    this.#adopted.get(slot)?.close();
    this.#adopted.delete(slot);
  }

  /** The whole cluster ends: only this process can still serve the connections in the backlogs. */
  clusterEnds(): void {
    this.#isLast = true;
  }

  /** This process ends before the cluster does: other processes keep its sockets open. */
  clusterContinues(): void {
    if (!this.#isReleased) this.#isLast = false;
  }

  /** The primary has closed its copies of all sockets. */
  primaryClosed(): void {
    this.#isReleased = true;
    this.#release();
  }

  /**
   * Closes all sockets. Connections in their backlogs are left to other processes that keep the
   * sockets open, or to systemd if it holds the socket too. Without other processes, this process
   * accepts and serves the connections first.
   *
   * @param signal when aborted, closes the sockets without further waiting.
   * @param others other listening servers to close, such as the servers of TCP microservices.
   */
  async leave(signal: AbortSignal, others: readonly net.Server[]): Promise<void> {
    const kept = this.isHeldBySystemd ? this.#adopting : undefined;
    this.#adopting = undefined; // refuses sockets that the primary still sends
    const servers = [...this.tracker.servers].filter(({ listening }) => listening);
    for (const server of servers) if (server !== this.#own) expectClose(server);
    const sockets = [...servers, ...this.#adopted.values(), ...others];
    const closing = this.#isLast ? sockets.filter((socket) => socket === kept) : sockets;
    for (const socket of closing) stopAccepting(socket);
    if (this.#isLast) await this.#emptyAndClose(sockets, signal);
  }

  /** Accepts the connections in the backlogs first. Each process that listens on the sockets does this. */
  async #emptyAndClose(sockets: readonly net.Server[], signal: AbortSignal): Promise<void> {
    // If the primary closed its sockets after this process, connections in between would be reset.
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

/** Node 20 to 26 set these properties and do not document them. */
type IdleSocket = net.Socket & {
  readonly _handle?: { readStop(): void } | null;
  readonly server?: unknown;
};

/** The settings of a server's connections, which net.Server keeps under the names of its options. */
function connectionOptionsOf(server: net.Server & net.ServerOpts): net.ServerOpts {
  // It keeps the delay in seconds.
  const keepAliveInitialDelay = (server.keepAliveInitialDelay ?? 0) * 1_000;
  return Object.assign({}, server, { keepAliveInitialDelay });
}

function isHttpServer(server: unknown): server is Server {
  if (server instanceof http.Server || server instanceof https.Server) return true;
  // Recognizes an HTTP/2 server by a method: node:http2 exports no server classes, and importing
  // the module would load it into every worker.
  return typeof (server as { updateSettings?: unknown }).updateSettings === 'function';
}

/**
 * Closes only the server's listening socket. `http.Server.close()` would also destroy idle
 * connections and stop the checks for slow senders (https://github.com/nodejs/node/issues/60617).
 */
function stopAccepting(server: net.Server): void {
  if (server.listening) net.Server.prototype.close.call(server);
}

/**
 * Lets the app close `server` in a hook after we have closed its socket. Node's `close()` fails for
 * a server that does not listen, and the app could take that for a failed shutdown. So the app's
 * `close()` only waits for the server's connections.
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

/** The largest number of file descriptors kept free for the rest of the process, and their largest share. */
const MAX_RESERVE = 1_024;
const MAX_RESERVE_RATIO = 0.25;

/** Node's types lack these properties. */
type ListeningServer = net.Server & { dropMaxConnection?: boolean; readonly _handle?: unknown };

const NODE_MAJOR = Number(process.versions.node.split('.')[0]);

/**
 * Returns a function that makes a server refuse connections before the process runs out of file
 * descriptors, unless the app has set `maxConnections` on the server.
 *
 * @param warn logs one line when the first connection is refused.
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
    // If node:cluster hands out connections and all workers are full, a refused connection would pass
    // from worker to worker without end. From Node 22.12 on, the worker can drop the connection.
    if (isHandedConnections(server) && NODE_MAJOR < 22) return;
    server.maxConnections = max;
    server.dropMaxConnection = true;
    server.on('drop', () => {
      tracker.droppedConnections += 1;
      warnOnce(
        `rejects connections: ${max} are open, and the process may have ${openFiles} files and sockets open; raise the limit (ulimit -n, or LimitNOFILE= in the systemd unit)`,
      );
    });
  };
}

/**
 * How many files and sockets this process may have open. Reads the soft limit, which Node raises to
 * the hard limit when it starts. `Infinity` without a limit, and on a system without /proc.
 */
export function openFilesLimit(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'utf8');
    return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}

/** Whether node:cluster hands connections to the server. Such a server's handle is a plain object. */
function isHandedConnections({ _handle: handle }: ListeningServer): boolean {
  const isObject = typeof handle === 'object' && handle !== null;
  return isObject && Object.getPrototypeOf(handle) === Object.prototype;
}
