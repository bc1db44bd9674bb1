import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, Http2Session } from 'node:http2';
import { CONNECTION, type TrackedSession, type TrackedSocket } from './connection.js';
import type { Scope } from './request-scope.js';
import type { RequestTracker } from './tracker.js';

/** Extends the HTTP/1.1 types, because the properties read here are the same. */
type Http2Request = IncomingMessage & Pick<Http2ServerRequest, 'stream'>;
type Http2Response = ServerResponse & Pick<Http2ServerResponse, 'stream'>;

interface Http2Exchange {
  readonly request: Http2Request;
  readonly response: Http2Response;
  readonly session: TrackedSession | undefined;
  /** When the request began, in monotonic ms. */
  readonly startedAt: number;
  readonly scope: Scope | undefined;
}

/** The error code CANCEL (RFC 9113, 7). Importing Node's constant would load node:http2 into every worker. */
const CANCEL = 0x8;

/** Tracks HTTP/2 sessions and their requests. Node's diagnostics channels do not publish them. */
export class Http2Sessions {
  readonly #sessions = new Set<Http2Session>();
  readonly #exchanges = new Set<Http2Exchange>();
  readonly #announced = new WeakSet<Http2Session>();
  #closing = false;

  constructor(private readonly tracker: RequestTracker) {}

  /** Starts tracking `server`. Costs nothing for a server that only speaks HTTP/1.1. */
  follow(server: Server): void {
    let listens = false;
    server.on('session', (session: TrackedSession) => {
      // A gRPC server has no 'request' listener. Adding one would make Node answer its streams.
      if (!listens && server.listenerCount('request') > 0) {
        listens = true;
        server.prependListener('request', this.#onRequest as never);
      }
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
      // With TLS, session.socket is the TLS socket, which got its connection at the handshake.
      const connection = (session.socket as TrackedSocket)[CONNECTION];
      if (connection === undefined) return;
      session[CONNECTION] = connection;
      connection.session = session;
    });
  }

  /** The requests in flight, the oldest first. */
  get exchanges(): Iterable<Http2Exchange> {
    return this.#exchanges;
  }

  /** Sends a GOAWAY on sessions with requests in flight. Idle sessions get it on their next request. */
  announceClose(): void {
    this.#closing = true;
    for (const { session } of this.#exchanges) this.#announce(session);
  }

  /** Closes all sessions with a GOAWAY. Requests in flight are finished, new requests are refused. */
  close(): void {
    for (const session of this.#sessions) if (!session.closed) session.close();
  }

  /** Aborts all requests and sessions. */
  destroy(): void {
    // Destroying only the session would end its streams as if their responses were complete.
    for (const { response } of this.#exchanges) response.stream.close(CANCEL);
    for (const session of this.#sessions) session.destroy();
  }

  readonly #onRequest = (request: Http2Request, response: Http2Response): void => {
    // A server with `allowHTTP1` also emits this event for HTTP/1.1 requests.
    if (request.httpVersionMajor < 2) return;
    const { tracker } = this;
    const session: TrackedSession | undefined = request.stream.session;
    const startedAt = performance.now();
    tracker.requestsInFlight += 1;
    const scope = tracker.scopes.begin(request, response, startedAt);
    const exchange = { request, response, session, startedAt, scope };
    this.#exchanges.add(exchange);
    if (this.#closing) this.#announce(session);
    if (session?.[CONNECTION]?.streamBegun()) closeGracefully(session);
    response.once('close', () => this.#over(exchange));
  };

  #over(exchange: Http2Exchange): void {
    this.#exchanges.delete(exchange);
    const { tracker } = this;
    const { request, response, session, startedAt, scope } = exchange;
    const connection = session?.[CONNECTION];
    if (connection !== undefined) connection.answered += 1;
    tracker.requestsInFlight -= 1;
    if (response.writableEnded) tracker.requestsTotal += 1;
    scope?.end();
    // CONNECT opens a tunnel or a WebSocket over HTTP/2 (RFC 8441), so its duration is not a response time.
    if (request.method === 'CONNECT') return;
    if (!response.writableEnded) return tracker.aborted(response);
    // The size is unknown, because the responses of a session share one connection.
    tracker.answered(request, response, performance.now() - startedAt, undefined);
  }

  #announce(session: Http2Session | undefined): void {
    if (session === undefined || this.#announced.has(session)) return;
    this.#announced.add(session);
    announceClose(session);
  }
}

/** The error code NO_ERROR (RFC 9113, 7). */
const NO_ERROR = 0x0;

/** The maximum stream ID (RFC 9113, 5.1.1). */
const LAST_STREAM_ID = 2 ** 31 - 1;

const GRACE_MS = 250;

/**
 * Uses a GOAWAY with the maximum stream ID (RFC 9113, 6.8) to ask the client to open another
 * session. Node 20 to 26 cannot send nghttp2's "shutdown notice", so nghttp2 ignores all streams
 * that arrive after the GOAWAY. It refuses them when the session closes. They are unprocessed, so
 * the client can safely retry them.
 */
function announceClose(session: Http2Session): void {
  // goaway() throws on a destroyed session, which is not `closed` until its socket is closed.
  if (!session.closed && !session.destroyed) session.goaway(NO_ERROR, LAST_STREAM_ID);
}

/**
 * Sends a GOAWAY and closes the session soon after. Call this just after a request has arrived,
 * because another request is then least likely to be on its way.
 */
export function closeGracefully(session: Http2Session): void {
  announceClose(session);
  setTimeout(() => session.close(), GRACE_MS).unref();
}
