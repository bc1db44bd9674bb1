import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, Http2Session } from 'node:http2';
import { CONNECTION, type TrackedSession, type TrackedSocket } from './connection.js';
import type { Scope } from './request-scope.js';
import type { RequestTracker } from './tracker.js';

/** Typed as over HTTP/1.1, because the properties that we read are the same. */
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

/** The error code CANCEL (RFC 9113, 7). Node's constant would load node:http2 into every worker. */
const CANCEL = 0x8;

/** Follows HTTP/2 sessions and their requests, which Node's diagnostics channels do not publish. */
export class Http2Sessions {
  readonly #sessions = new Set<Http2Session>();
  readonly #exchanges = new Set<Http2Exchange>();
  readonly #announced = new WeakSet<Http2Session>();
  #closing = false;

  constructor(private readonly tracker: RequestTracker) {}

  /** Starts to follow `server`. Costs nothing for a server that only speaks HTTP/1.1. */
  follow(server: Server): void {
    let listens = false;
    server.on('session', (session: TrackedSession) => {
      // A first listener for 'request' would make Node answer streams itself. A gRPC server has none.
      if (!listens && server.listenerCount('request') > 0) {
        listens = true;
        server.prependListener('request', this.#onRequest as never);
      }
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
      // With TLS, session.socket is the TLS socket. The handshake has set its connection.
      const connection = (session.socket as TrackedSocket)[CONNECTION];
      if (connection === undefined) return;
      session[CONNECTION] = connection;
      connection.session = session;
    });
  }

  /** The requests whose responses are not complete, in the order in which they began. */
  get exchanges(): Iterable<Http2Exchange> {
    return this.#exchanges;
  }

  /** Sends a GOAWAY on sessions with open requests. Idle sessions get a GOAWAY at their next request. */
  announceClose(): void {
    this.#closing = true;
    for (const { session } of this.#exchanges) this.#announce(session);
  }

  /** Closes each session with a GOAWAY: requests that have begun are finished, new requests are refused. */
  close(): void {
    for (const session of this.#sessions) if (!session.closed) session.close();
  }

  /** Aborts all requests and sessions, so that clients see that their responses are incomplete. */
  destroy(): void {
    // Resets the streams first: destroying a session ends its streams as if they were complete.
    for (const { response } of this.#exchanges) response.stream.close(CANCEL);
    for (const session of this.#sessions) session.destroy();
  }

  readonly #onRequest = (request: Http2Request, response: Http2Response): void => {
    // A server that speaks both protocols emits this event for HTTP/1.1 requests too.
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
    // A CONNECT stream can be a WebSocket over HTTP/2 (RFC 8441), which is not a response.
    if (request.method === 'CONNECT') return;
    if (!response.writableEnded) return tracker.aborted(response);
    // Frames are not counted, so the size of the response is unknown.
    tracker.answered(request, response, performance.now() - startedAt, undefined);
  }

  #announce(session: Http2Session | undefined): void {
    if (session === undefined || this.#announced.has(session)) return;
    this.#announced.add(session);
    announceClose(session);
  }
}

/** The code NO_ERROR (RFC 9113, 7). Node's constant would load node:http2 into every worker. */
const NO_ERROR = 0x0;

/** The highest number that a stream can have. */
const LAST_STREAM_ID = 2 ** 31 - 1;

const GRACE_MS = 250;

/**
 * Asks a session's client to open another session, by a GOAWAY with the highest stream number as
 * the last one (RFC 9113, 6.8). nghttp2 nevertheless ignores each stream that begins after this
 * GOAWAY. It would accept such streams only after a "shutdown notice", and Node 20 to 26 cannot
 * send one. When the session closes, it refuses the requests that the client sent before it got the
 * GOAWAY. Such requests have not begun, so the client can safely send them again.
 */
function announceClose(session: Http2Session): void {
  // A destroyed session is not `closed` until its socket is closed, and goaway() on it throws.
  if (!session.closed && !session.destroyed) session.goaway(NO_ERROR, LAST_STREAM_ID);
}

/**
 * Sends a GOAWAY as {@link announceClose} does, and closes the session soon after. Call this just
 * after a request has arrived: the client's next request is then least likely to be on its way.
 */
export function closeGracefully(session: Http2Session): void {
  announceClose(session);
  setTimeout(() => session.close(), GRACE_MS).unref();
}
