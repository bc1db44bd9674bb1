import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { DrainReport } from '../../contract/messages.js';
import type { ResponseObserver } from '../../contract/snapshot/types.js';
import {
  askToClose,
  takeBack,
  Connection,
  CONNECTION,
  endEventStream,
  type HttpMessage,
  isEventStream,
  isOpenEventStream,
  type SecureSocket,
  type TrackedSocket,
} from './connection.js';
import { Http2Sessions } from './http2.js';
import { RequestScopes, type RunningRequest } from './request-scope.js';

/** Idle connections stay open this long for requests that a client sent before it knew of the drain. */
const IDLE_GRACE_MS = 250;

/**
 * The drain keeps an idle connection open for this time after the connection was opened or its last
 * request began. Another request may be on its way, and late on a busy machine. A close would lose
 * that request. Its response announces the close.
 */
const RECENT_MS = 1_000;

/**
 * Follows the connections and requests of HTTP servers for the heartbeat, the drain and the request
 * metrics. Listens to Node's diagnostics channels, because they cost less per request than listeners
 * on each request and response, and change nothing in the app.
 */
export class RequestTracker {
  /** The number of requests whose response is not complete. */
  requestsInFlight = 0;
  requestsTotal = 0;
  /** The number of connections that closed after their clients were asked to connect again. */
  rebalancedConnectionsTotal = 0;
  /** The number of connections that were refused or closed because the server had its maximum of connections. */
  droppedConnections = 0;
  /** The observer of this process, if it has one. */
  observer: ResponseObserver | undefined;
  /** Sends an idle connection to another worker. @returns whether the connection can be sent. */
  handOver: ((connection: Connection) => boolean) | undefined;
  readonly scopes = new RequestScopes();
  readonly #connections = new Set<Connection>();
  readonly #http2 = new Http2Sessions(this);
  /** The servers that are open. In a drain also closed servers: they may have connections of adopted sockets. */
  readonly servers = new Set<Server>();
  /** When the drain began, in monotonic ms. Since that time, responses ask clients to reconnect. */
  #closingSince: number | undefined;
  /** Set while this process destroys connections. Their requests are not reported as aborted. */
  #destroying = false;

  constructor() {
    subscribe('http.server.request.start', this.#onStart);
    subscribe('http.server.response.finish', this.#onFinish);
  }

  get openConnections(): number {
    return this.#connections.size;
  }

  get connections(): Iterable<Connection> {
    return this.#connections;
  }

  /** Starts to follow `server`. A second call for the server changes nothing. */
  follow(server: Server): void {
    if (this.servers.has(server)) return;
    this.servers.add(server);
    server.once('close', () => {
      if (this.#closingSince === undefined) this.servers.delete(server);
    });
    // A closed server may listen again. Its listeners are added only once.
    if (server.listeners('connection').includes(this.#onConnection)) return;
    // Our listeners run first, because the server's own listeners begin an HTTP/2 session immediately.
    server.prependListener('connection', this.#onConnection);
    server.prependListener('secureConnection', this.#onSecureConnection);
    listenBeforeApp(server, 'upgrade', this.#onUpgrade);
    this.#http2.follow(server);
  }

  unfollow(): void {
    for (const server of this.servers) {
      server.off('connection', this.#onConnection);
      server.off('secureConnection', this.#onSecureConnection);
    }
    unsubscribe('http.server.request.start', this.#onStart);
    unsubscribe('http.server.response.finish', this.#onFinish);
  }

  /** Requests in flight, the oldest first. */
  get inFlight(): readonly RunningRequest[] {
    const http1 = [...this.#connections].flatMap(({ inFlight, response, startedAt }) =>
      inFlight > 0 && response !== undefined
        ? [{ request: response.req, response, startedAt }]
        : [],
    );
    return [...http1, ...this.#http2.exchanges].sort((a, b) => a.startedAt - b.startedAt);
  }

  /** From now on the last response of each connection carries `Connection: close`. */
  closeAfterResponse(): void {
    this.#closingSince = performance.now();
    this.#http2.announceClose();
    for (const { response } of this.#connections) {
      if (response !== undefined) askToClose(response);
    }
  }

  /** The clients of open WebSockets and event streams. */
  readonly endless = {
    present: (): readonly unknown[] => [
      ...[...this.#connections].filter(({ isEndless }) => isEndless),
      ...[...this.#http2.exchanges].map((each) => each.response).filter(isOpenEventStream),
    ],
    leave: (one: unknown): void =>
      one instanceof Connection ? one.endEndless() : endEventStream(one as ServerResponse),
  };

  /** Restarts the wait for idle connections, because new connections were accepted until now. */
  postponeIdle(): void {
    this.#closingSince = performance.now();
  }

  /**
   * Hands idle connections over to another worker, or closes them. Closes none in the first
   * {@link IDLE_GRACE_MS} of the drain, so that requests on their way can arrive.
   *
   * @param patient closes no HTTP/1.1 connection while a client may be about to send a request.
   */
  closeIdle(patient = true): void {
    const now = performance.now();
    const isEarly = now - (this.#closingSince ?? -Infinity) < IDLE_GRACE_MS;
    if (!isEarly) this.#http2.close();
    for (const connection of this.#idle()) {
      const isRecent = patient && now - connection.startedAt < RECENT_MS;
      connection.isHandedOver = this.handOver?.(connection) === true;
      if (!connection.isHandedOver && !isEarly && !isRecent) connection.socket.destroy();
    }
  }

  /**
   * The idle connections, also those that never sent a byte. Only Node knows whether a request has
   * arrived in part, so this takes those that Node would destroy.
   */
  #idle(): Connection[] {
    const idle = new Set<Connection>();
    const restores = [...this.#connections].map((connection) => {
      const { socket } = connection;
      const destroy = Reflect.get(socket, 'destroy') as TrackedSocket['destroy'];
      socket.destroy = () => {
        idle.add(connection);
        return socket;
      };
      return () => (socket.destroy = destroy);
    });
    try {
      // A server for HTTP/2 only does not have this method.
      for (const server of this.servers) server.closeIdleConnections?.();
    } finally {
      for (const restore of restores) restore();
    }
    // A response may have ended and still be sent. Until Node 26.4 a connection that never sent a byte
    // does not count as idle (https://github.com/nodejs/node/issues/63452), and even 26.12 does not
    // know a TLS connection before its handshake.
    for (const each of this.#connections) if (each.socket.bytesRead === 0) idle.add(each);
    return [...idle].filter((each) => each.inFlight === 0 && !each.isHandedOver);
  }

  /**
   * Destroys all connections.
   *
   * @returns how many connections, requests and WebSockets it cut off. Does not count connections that
   *   never sent a byte: their clients lose nothing.
   */
  destroyAll(): Omit<DrainReport, 'hookError'> {
    const connections = [...this.#connections];
    const cut = {
      destroyedConnections: connections.filter(({ socket }) => socket.bytesRead !== 0).length,
      abortedRequests: this.requestsInFlight,
      destroyedWebSockets: connections.filter(({ webSocket }) => webSocket).length,
    };
    this.#destroying = true;
    this.#http2.destroy();
    for (const { socket } of connections) socket.destroy();
    return cut;
  }

  /** Called when the connection's socket has closed. */
  forget(connection: Connection): void {
    this.#connections.delete(connection);
    if (connection.closeNotice?.sent) this.rebalancedConnectionsTotal += 1;
    // Requests still in flight on the connection will not finish: their client has disconnected.
    this.requestsInFlight -= connection.inFlight;
    const { response, webSocket } = connection;
    // Reports at most one request: the newest in flight.
    if (response !== undefined && !webSocket) this.aborted(response);
    connection.abandon();
  }

  /** A response was sent. `bytes` is unknown over HTTP/2. Runs for every request. */
  answered(
    request: IncomingMessage,
    response: ServerResponse,
    durationMs: number,
    bytes: number | undefined,
  ): void {
    if (this.observer === undefined) return;
    // A response with a known length is not an event stream, so its content type is not read:
    // reading it would make a light request 2 % slower.
    if (response.chunkedEncoding !== false && isEventStream(response)) return;
    this.observer.finished(request, response, durationMs, bytes);
  }

  /** A connection or stream was closed before its response was complete. */
  aborted(response: ServerResponse): void {
    if (this.#destroying || (response.headersSent && isEventStream(response))) return;
    this.observer?.aborted(response.req);
  }

  readonly #onConnection = (socket: TrackedSocket): void => {
    const connection = new Connection(this, socket);
    socket[CONNECTION] = connection;
    this.#connections.add(connection);
    socket.on('close', onClose);
  };

  readonly #onSecureConnection = (socket: SecureSocket): void => {
    const connection = socket._parent?.[CONNECTION];
    if (connection === undefined) return;
    connection.socket = socket;
    socket[CONNECTION] = connection;
  };

  readonly #onUpgrade = ({ headers }: IncomingMessage, socket: Duplex): void => {
    const connection = (socket as TrackedSocket)[CONNECTION];
    if (connection === undefined || headers.upgrade?.toLowerCase() !== 'websocket') return;
    connection.webSocket = true;
  };

  readonly #onStart = (message: unknown): void => {
    const { request, response, socket } = message as HttpMessage;
    const connection = socket[CONNECTION];
    if (connection?.owner !== this) return;
    const before = connection.response;
    const now = performance.now();
    connection.begin(response, now, this.scopes.begin(request, response, now));
    this.requestsInFlight += 1;
    if (this.#closingSince !== undefined) {
      // Only the last response may carry `Connection: close`, or later pipelined requests are lost.
      if (before !== undefined) takeBack(before);
      askToClose(response);
    } else if (connection.closeNotice?.onRequest(connection, request, response) === false) {
      connection.closeNotice = undefined;
      connection.pipelines = true;
    }
  };

  readonly #onFinish = (message: unknown): void => {
    const { request, response, socket } = message as HttpMessage;
    const connection = socket[CONNECTION];
    if (connection?.owner !== this || connection.inFlight === 0) return;
    // Until Node 24 this event also comes if the client disconnected before it got the response.
    if (socket.errored) return;
    const now = performance.now();
    const durationMs = now - connection.startedAt;
    const bytes = connection.accountBytes();
    connection.finish();
    this.requestsInFlight -= 1;
    this.requestsTotal += 1;
    this.answered(request, response, durationMs, bytes);
    if (connection.inFlight === 0) connection.startedAt = now;
  };
}

/** One function for all sockets, because a closure for each socket would slow every new connection. */
function onClose(this: TrackedSocket): void {
  const connection = this[CONNECTION]!;
  connection.owner.forget(connection);
}

/**
 * Calls `listener` before the app's listeners for the event. Adds it only when the app adds a
 * listener: otherwise ours would keep the requests from the app's handler, and no one would answer.
 */
export function listenBeforeApp(
  server: Server,
  event: 'upgrade' | 'connect',
  listener: (request: IncomingMessage, socket: Duplex) => void,
): void {
  if (server.listenerCount(event) > 0) return void server.prependListener(event, listener);
  const onNewListener = (added: string | symbol): void => {
    if (added !== event) return;
    server.off('newListener', onNewListener);
    server.prependListener(event, listener);
  };
  server.on('newListener', onNewListener);
}
