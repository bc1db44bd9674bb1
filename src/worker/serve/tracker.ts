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

/** Idle connections stay open this long for requests that are on their way when the drain begins. */
const IDLE_GRACE_MS = 250;

/**
 * An idle connection stays open this long after it was opened or after its last request, because the
 * client's next request may be on its way. The response to this request announces the close.
 */
const RECENT_MS = 1_000;

/**
 * Tracks the connections and requests of HTTP servers for the heartbeat, the drain and the request
 * metrics. Uses Node's diagnostics channels, because they cost less than listeners on each request
 * and response, and do not affect the app.
 */
export class RequestTracker {
  requestsInFlight = 0;
  requestsTotal = 0;
  /** The number of connections that closed after their clients were asked to reconnect. */
  rebalancedConnectionsTotal = 0;
  /** The number of connections that were refused because the server had reached `maxConnections`. */
  droppedConnections = 0;
  observer: ResponseObserver | undefined;
  /** Sends an idle connection to another worker. @returns `false` if it cannot be sent. */
  handOver: ((connection: Connection) => boolean) | undefined;
  readonly scopes = new RequestScopes();
  readonly #connections = new Set<Connection>();
  readonly #http2 = new Http2Sessions(this);
  /** The open servers. A drain keeps closed servers too, because they may still have connections. */
  readonly servers = new Set<Server>();
  /** When the drain began, in monotonic ms. Since then, responses ask clients to reconnect. */
  #closingSince: number | undefined;
  /** Set when the drain destroys the connections. Their requests are not reported as aborted. */
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

  /** Starts tracking `server`. Does nothing if it is already tracked. */
  follow(server: Server): void {
    if (this.servers.has(server)) return;
    this.servers.add(server);
    server.once('close', () => {
      if (this.#closingSince === undefined) this.servers.delete(server);
    });
    // A server that was closed and listens again already has our listeners.
    if (server.listeners('connection').includes(this.#onConnection)) return;
    // Our listeners must run first, because the server's own listener starts an HTTP/2 session.
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

  /** Requests in flight, the oldest first. At most one per HTTP/1.1 connection. */
  get inFlight(): readonly RunningRequest[] {
    const http1 = [...this.#connections].flatMap(({ inFlight, response, startedAt }) =>
      inFlight > 0 && response !== undefined
        ? [{ request: response.req, response, startedAt }]
        : [],
    );
    return [...http1, ...this.#http2.exchanges].sort((a, b) => a.startedAt - b.startedAt);
  }

  /** From now on, the last response on each connection carries `Connection: close`. */
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

  /** Restarts the {@link IDLE_GRACE_MS} wait, because connections were accepted until now. */
  postponeIdle(): void {
    this.#closingSince = performance.now();
  }

  /**
   * Hands idle connections over to another worker, or closes them. Closes none in the first
   * {@link IDLE_GRACE_MS} of the drain.
   *
   * @param patient keeps HTTP/1.1 connections open for {@link RECENT_MS} after their last request.
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
   * The idle connections, including unused ones. Only Node knows whether part of a request has
   * arrived, so this collects the connections that Node's closeIdleConnections() would destroy.
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
      // HTTP/2 servers lack this method.
      for (const server of this.servers) server.closeIdleConnections?.();
    } finally {
      for (const restore of restores) restore();
    }
    // Until Node 26.4, an unused connection does not count as idle
    // (https://github.com/nodejs/node/issues/63452). Even 26.12 ignores a TLS connection before its
    // handshake.
    for (const each of this.#connections) if (each.socket.bytesRead === 0) idle.add(each);
    // Node counts a connection as idle while the end of a response is still being sent.
    return [...idle].filter((each) => each.inFlight === 0 && !each.isHandedOver);
  }

  /**
   * Destroys all connections.
   *
   * @returns the number of destroyed connections, requests and WebSockets. Does not count unused
   *   connections, because their clients lose nothing.
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

  forget(connection: Connection): void {
    this.#connections.delete(connection);
    if (connection.closeNotice?.sent) this.rebalancedConnectionsTotal += 1;
    this.requestsInFlight -= connection.inFlight;
    const { response, webSocket } = connection;
    // With pipelining, reports only the newest request.
    if (response !== undefined && !webSocket) this.aborted(response);
    connection.abandon();
  }

  /** Called once a response is sent. `bytes` is unknown over HTTP/2. */
  answered(
    request: IncomingMessage,
    response: ServerResponse,
    durationMs: number,
    bytes: number | undefined,
  ): void {
    if (this.observer === undefined) return;
    // A response with a known length is not an event stream. Reading its content type would make a
    // light request 2 % slower.
    if (response.chunkedEncoding !== false && isEventStream(response)) return;
    this.observer.finished(request, response, durationMs, bytes);
  }

  /** Called when a connection or stream closes before its response is complete. */
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
      // If an earlier response carried `Connection: close`, later pipelined requests would be lost.
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
    // Until Node 24, this event is also emitted if the client disconnected before the response was sent.
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

/** One function for all sockets, because a closure per socket would slow down every new connection. */
function onClose(this: TrackedSocket): void {
  const connection = this[CONNECTION]!;
  connection.owner.forget(connection);
}

/**
 * Calls `listener` before the app's listeners for the event. Waits until the app adds a listener:
 * with only our listener, Node would leave the request unanswered.
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
