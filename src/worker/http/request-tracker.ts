import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { DrainReport } from '../../contract/ipc/index.js';
import { askToClose, takeBack } from './close-notice.js';
import {
  Connection,
  CONNECTION,
  type HttpMessage,
  type SecureSocket,
  type TrackedSocket,
} from './connection.js';
import type { RequestUnderWay } from '../quarantine/describe-request.js';
import { endEventStream, isOpenEventStream } from './event-stream.js';
import { Http2Sessions } from './http2-sessions.js';
import { RequestScopes } from './request-scopes.js';
import { ResponseReports } from './response-reports.js';
import { followUpgrades } from './web-socket.js';

/** A request that the client had sent before it could know of the drain arrives within this. */
const IDLE_GRACE_MS = 250;

/**
 * A client that has just connected, or has just been answered, may be about to ask, and may be late
 * on a machine that is busy. Once it asks, the answer tells it that the connection ends; if that
 * ended before, its request would be lost.
 */
const RECENT_MS = 1_000;

/**
 * Follows the connections and requests of HTTP servers, once for all that need it: heartbeat, drain
 * and request metrics. It listens to Node's own diagnostics channels, which cost a request less than
 * any listener added to its objects, and touches nothing of the app.
 */
export class RequestTracker {
  /** Requests begun and not yet answered. */
  requestsInFlight = 0;
  /** Responses finished. */
  requestsTotal = 0;
  /** Connections that were closed because their clients were asked to connect again. */
  rebalancedConnectionsTotal = 0;
  /** Connections that were refused or closed at the limit. */
  droppedConnections = 0;
  readonly reports = new ResponseReports();
  readonly scopes = new RequestScopes();
  readonly #connections = new Set<Connection>();
  readonly #http2 = new Http2Sessions(this);
  readonly #servers = new Set<Server>();
  /** Servers with our listeners. They keep them, and may listen again. */
  #followed: WeakSet<Server> | undefined;
  /** Set by the drain, monotonic ms: from then on each response asks its client to go elsewhere. */
  #closingSince: number | undefined;

  get openConnections(): number {
    return this.#connections.size;
  }

  get connections(): Iterable<Connection> {
    return this.#connections;
  }

  /** Starts to follow `server`; a second call for it changes nothing. */
  follow(server: Server): void {
    if (this.#servers.has(server)) return;
    this.#servers.add(server);
    server.once('close', () => {
      // In a drain it may have connections that came over other sockets.
      if (this.#closingSince === undefined) this.#servers.delete(server);
    });
    if (this.#followed?.has(server)) return;
    if (this.#followed === undefined) {
      this.#followed = new WeakSet();
      subscribe('http.server.request.start', this.#onStart);
      subscribe('http.server.response.finish', this.#onFinish);
    }
    this.#followed.add(server);
    // First of all: the server's own listeners begin an HTTP/2 session at once.
    server.prependListener('connection', this.#onConnection);
    server.prependListener('secureConnection', this.#onSecureConnection);
    followUpgrades(server, this.#onWebSocket);
    this.#http2.follow(server);
  }

  unfollow(): void {
    for (const server of this.#servers) {
      server.off('connection', this.#onConnection);
      server.off('secureConnection', this.#onSecureConnection);
    }
    unsubscribe('http.server.request.start', this.#onStart);
    unsubscribe('http.server.response.finish', this.#onFinish);
  }

  /** Requests in flight, the oldest first. */
  get inFlight(): readonly RequestUnderWay[] {
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

  /** Connections are still accepted: what the last of them asks is yet to arrive. */
  postponeIdle(): void {
    this.#closingSince = performance.now();
  }

  /**
   * Asks WebSockets and event streams to end. Then closes connections on which nothing is going on,
   * and those that never sent a byte; but not before a request that was on its way has had time to
   * arrive.
   *
   * @param patient closes none while a client may be about to ask.
   */
  closeIdle(patient = true): void {
    for (const connection of this.#connections) connection.endEndless();
    for (const { response } of this.#http2.exchanges) {
      if (isOpenEventStream(response)) endEventStream(response);
    }
    const now = performance.now();
    if (now - (this.#closingSince ?? -Infinity) < IDLE_GRACE_MS) return;
    this.#http2.close();
    // Node closes all that are idle, or none.
    for (const { inFlight, startedAt } of this.#connections) {
      if (patient && inFlight === 0 && now - startedAt < RECENT_MS) return;
    }
    // A server of HTTP/2 alone has no such method.
    for (const server of this.#servers) server.closeIdleConnections?.();
    // Until Node 26.4 a connection that never sent a byte does not count as idle
    // (https://github.com/nodejs/node/issues/63452).
    for (const { socket, inFlight } of this.#connections) {
      if (inFlight === 0 && socket.bytesRead === 0) socket.destroy();
    }
  }

  /** Destroys every connection, and says what that cut off. */
  destroyAll(): Omit<DrainReport, 'durationMs' | 'unacceptedConnections' | 'hookError'> {
    const cut = {
      destroyedConnections: this.#connections.size,
      abortedRequests: this.requestsInFlight,
      destroyedWebSockets: [...this.#connections].filter(({ webSocket }) => webSocket).length,
    };
    this.reports.cutting = true;
    this.#http2.destroy();
    for (const { socket } of this.#connections) socket.destroy();
    return cut;
  }

  /** Called by the socket's own listener. */
  forget(connection: Connection): void {
    this.#connections.delete(connection);
    if (connection.closeNotice?.sent) this.rebalancedConnectionsTotal += 1;
    // Requests whose client went away before the answer: they will not finish.
    this.requestsInFlight -= connection.inFlight;
    this.reports.lost(connection);
    connection.abandon();
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

  readonly #onWebSocket = (socket: Duplex): void => {
    const connection = (socket as TrackedSocket)[CONNECTION];
    if (connection !== undefined) connection.webSocket = true;
  };

  readonly #onStart = (message: unknown): void => {
    const { request, response, socket } = message as HttpMessage;
    const connection = socket[CONNECTION];
    if (connection?.owner !== this) return;
    const before = connection.response;
    connection.begin(response, this.reports.begun(request), this.scopes.begin(request, response));
    this.requestsInFlight += 1;
    if (this.#closingSince !== undefined) {
      // Only the last response may say so: what is pipelined behind it would be lost.
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
    // Until Node 24 also of a response whose client went away before it had all of it.
    if (socket.errored) return;
    const { startedAt } = connection;
    const bytes = connection.accountBytes();
    connection.finish();
    this.requestsInFlight -= 1;
    this.requestsTotal += 1;
    this.reports.sent(request, response, startedAt, bytes);
  };
}

/** One function for all sockets: a closure each would cost every new connection. */
function onClose(this: TrackedSocket): void {
  const connection = this[CONNECTION]!;
  connection.owner.forget(connection);
}
