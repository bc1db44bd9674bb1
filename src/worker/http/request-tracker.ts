import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:http';
import type { Duplex } from 'node:stream';
import type { DrainReport } from '../../contract/ipc/index.js';
import type { EnterScope, ResponseObserver } from '../../contract/snapshot/index.js';
import { askToClose, takeBack } from './closing-response.js';
import {
  Connection,
  CONNECTION,
  type ConnectionOwner,
  type HttpMessage,
  type SecureSocket,
  type TrackedSession,
  type TrackedSocket,
} from './connection.js';
import type { RequestUnderWay } from './describe-request.js';
import { endEventStream, isOpenEventStream } from './event-stream.js';
import { closeIdleConnections } from '../drain/idle-connections.js';
import { asHttp1, type Http2Observer, Http2Sessions } from './http2-sessions.js';
import { RequestScopes } from './request-scopes.js';
import { ResponseReports } from './response-reports.js';
import { followUpgrades } from './web-socket.js';

/** A request that the client had sent before it could know of the drain arrives within this. */
const IDLE_GRACE_MS = 250;

/**
 * Follows the connections and requests of HTTP servers, once for all that need
 * it: heartbeat, drain and request metrics. It listens to Node's own
 * diagnostics channels, which cost a request less than any listener added to
 * its objects, and touches nothing of the app.
 */
export class RequestTracker implements ConnectionOwner {
  /** Requests begun and not yet answered. */
  requestsInFlight = 0;
  /** Responses finished. */
  requestsTotal = 0;
  /** Connections that were closed because their clients were asked to connect again. */
  rebalancedConnectionsTotal = 0;
  /** Connections that were refused or closed at the limit. */
  droppedConnections = 0;
  readonly #connections = new Set<Connection>();
  readonly #http2 = new Http2Sessions();
  readonly reports = new ResponseReports();
  readonly scopes = new RequestScopes();
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
    this.#http2.follow(server, this.#http2Observer);
  }

  unfollow(): void {
    for (const server of this.#servers) {
      server.off('connection', this.#onConnection);
      server.off('secureConnection', this.#onSecureConnection);
    }
    unsubscribe('http.server.request.start', this.#onStart);
    unsubscribe('http.server.response.finish', this.#onFinish);
  }

  /** Tells `observer` of each response. There is one observer at most. */
  observe(observer: ResponseObserver): void {
    this.reports.observer = observer;
  }

  /** Has `enter` called where the scope of a request begins. One at most. */
  followScopes(enter: EnterScope | undefined): void {
    this.scopes.enter = enter;
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
   * Asks what has no end of its own to end: WebSockets, streams of events. Then
   * closes connections on which nothing is going on, and those that never sent
   * a byte; but not before a request that was on its way has had time to arrive,
   * nor while a client may be about to send one.
   *
   * @param patient there is time left for such a client.
   */
  closeIdle(patient = true): void {
    for (const connection of this.#connections) connection.endEndless();
    for (const { response } of this.#http2.exchanges) {
      if (isOpenEventStream(response)) endEventStream(response);
    }
    if (performance.now() - (this.#closingSince ?? -Infinity) < IDLE_GRACE_MS) return;
    this.#http2.close();
    closeIdleConnections(this.#servers, this.#connections, patient);
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

  readonly #http2Observer: Http2Observer = {
    opened: (session: TrackedSession) => {
      // With TLS the session's socket is the one that HTTP speaks on, known since it was secured.
      const connection = (session.socket as TrackedSocket)[CONNECTION];
      if (connection === undefined) return;
      session[CONNECTION] = connection;
      connection.session = session;
    },
    begun: (exchange) => {
      this.requestsInFlight += 1;
      this.reports.lastRequest?.began(exchange.request, exchange.startedAt);
      exchange.scope = this.scopes.begin(...asHttp1(exchange));
      connectionOf(exchange.session)?.streamBegun();
    },
    over: (exchange) => {
      const { session, response, startedAt, scope } = exchange;
      if (response.writableEnded) scope?.end();
      else scope?.abandon();
      const connection = connectionOf(session);
      if (connection !== undefined) connection.answered += 1;
      this.requestsInFlight -= 1;
      if (response.writableEnded) this.requestsTotal += 1;
      this.reports.streamOver(...asHttp1(exchange), performance.now() - startedAt);
    },
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

const connectionOf = (session: TrackedSession | undefined) => session?.[CONNECTION];

/** One function for all sockets: a closure each would cost every new connection. */
function onClose(this: TrackedSocket): void {
  const connection = this[CONNECTION]!;
  connection.owner.forget(connection);
}
