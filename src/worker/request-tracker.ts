import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ResponseObserver } from '../snapshot/index.js';

/** What is known of an open connection. Kept on its socket: no lookup on the request path. */
interface Connection {
  readonly socket: Socket;
  /**
   * When each request in flight started, oldest first, monotonic ms. More than
   * one only with pipelining, where responses leave in the order of requests.
   */
  readonly startedAt: number[];
  /** In flight, for the drain to mark. */
  response: ServerResponse | undefined;
}

const CONNECTION = Symbol('nestjs-cluster.connection');
type TrackedSocket = Socket & { [CONNECTION]?: Connection };

interface HttpMessage {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: TrackedSocket;
  readonly server: Server;
}

/**
 * Follows the connections and requests of one HTTP server, once for all that
 * need it: heartbeat, drain and request metrics. It listens to Node's own
 * diagnostics channels, which cost a request less than any listener added to
 * its objects, and touches nothing of the app.
 */
export class RequestTracker {
  /** Requests begun and not yet answered. */
  requestsInFlight = 0;
  /** Responses finished. */
  requestsTotal = 0;
  /** Set by the drain: each response asks its client to go elsewhere. */
  #closing = false;
  readonly #connections = new Set<Connection>();
  #observer: ResponseObserver | undefined;
  #server: Server | undefined;

  get openConnections(): number {
    return this.#connections.size;
  }

  /** Starts to follow `server`; a second call changes nothing. */
  follow(server: Server): void {
    if (this.#server !== undefined) return;
    this.#server = server;
    server.on('connection', this.#onConnection);
    subscribe('http.server.request.start', this.#onStart);
    subscribe('http.server.response.finish', this.#onFinish);
  }

  unfollow(): void {
    this.#server?.off('connection', this.#onConnection);
    unsubscribe('http.server.request.start', this.#onStart);
    unsubscribe('http.server.response.finish', this.#onFinish);
  }

  /** Tells `observer` of each response. There is one observer at most. */
  observe(observer: ResponseObserver): void {
    this.#observer = observer;
  }

  /** From now on every response, also of requests in flight, carries `Connection: close`. */
  closeAfterResponse(): void {
    this.#closing = true;
    for (const { response } of this.#connections) {
      if (response !== undefined && !response.headersSent) response.shouldKeepAlive = false;
    }
  }

  /** Closes connections on which nothing is going on, and those that never sent a byte. */
  closeIdle(): void {
    this.#server?.closeIdleConnections();
    // Until Node 26.4 a connection that never sent a byte does not count as idle
    // (https://github.com/nodejs/node/issues/63452).
    for (const { socket, startedAt } of this.#connections) {
      if (startedAt.length === 0 && socket.bytesRead === 0) socket.destroy();
    }
  }

  /** Destroys every connection, and says what that cut off. */
  destroyAll(): { destroyedConnections: number; abortedRequests: number } {
    const cut = {
      destroyedConnections: this.#connections.size,
      abortedRequests: this.requestsInFlight,
    };
    for (const { socket } of this.#connections) socket.destroy();
    return cut;
  }

  readonly #onConnection = (socket: TrackedSocket): void => {
    const connection: Connection = { socket, startedAt: [], response: undefined };
    socket[CONNECTION] = connection;
    this.#connections.add(connection);
    socket.once('close', () => {
      this.#connections.delete(connection);
      // Requests whose client went away before the answer: they will not finish.
      this.requestsInFlight -= connection.startedAt.length;
      connection.startedAt.length = 0;
      connection.response = undefined;
    });
  };

  readonly #onStart = (message: unknown): void => {
    const { response, socket, server } = message as HttpMessage;
    if (server !== this.#server) return;
    const connection = socket[CONNECTION];
    if (connection === undefined) return;
    connection.startedAt.push(performance.now());
    connection.response = response;
    this.requestsInFlight += 1;
    if (this.#closing) response.shouldKeepAlive = false;
  };

  readonly #onFinish = (message: unknown): void => {
    const { request, response, socket, server } = message as HttpMessage;
    if (server !== this.#server) return;
    const connection = socket[CONNECTION];
    const startedAt = connection?.startedAt.shift();
    if (connection === undefined || startedAt === undefined) return;
    if (connection.startedAt.length === 0) connection.response = undefined;
    this.requestsInFlight -= 1;
    this.requestsTotal += 1;
    this.#observer?.(request, response, performance.now() - startedAt);
  };
}
