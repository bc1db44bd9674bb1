import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, Http2Session } from 'node:http2';
import type { Scope } from './request-scopes.js';

/** A request of HTTP/2 that is not over. */
export interface Http2Exchange {
  readonly request: Http2ServerRequest;
  readonly response: Http2ServerResponse;
  readonly session: Http2Session | undefined;
  /** Monotonic ms. */
  readonly startedAt: number;
  /** Set if a GOAWAY was asked for. */
  scope: Scope | undefined;
}

/** RFC 9113, 7. Node's own constants would load its HTTP/2 into every worker. */
const NO_ERROR = 0x0;
const CANCEL = 0x8;

/** The highest number that a stream can have. */
const LAST_STREAM_ID = 2 ** 31 - 1;

/** How long a session that was told to go stays open for the streams that have begun. */
const GOAWAY_GRACE_MS = 250;

/**
 * Asks a session's client to go elsewhere, by a GOAWAY that names no last stream (RFC 9113, 6.8).
 * nghttp2 ignores each stream that begins after it, though: only a "shutdown notice" would let
 * them in, and Node has no call for one (20 to 26). The session's close refuses requests
 * that cross the GOAWAY before they begin, so they are safe to send again.
 */
function announceClose(session: Http2Session): void {
  // One that was destroyed is not closed until its socket is, and throws.
  if (!session.closed && !session.destroyed) session.goaway(NO_ERROR, LAST_STREAM_ID);
}

/**
 * The same, and closes the session soon. To be called when a request has
 * arrived: its client is then least likely to have another on its way.
 */
export function closeGracefully(session: Http2Session): void {
  announceClose(session);
  setTimeout(() => session.close(), GOAWAY_GRACE_MS).unref();
}

/** What is told of each session, and each request. */
export interface Http2Observer {
  opened(session: Http2Session): void;
  begun(exchange: Http2Exchange): void;
  over(exchange: Http2Exchange): void;
}

/** The HTTP/2 sessions of a server: Node's channels for HTTP/1.1 know nothing of them. */
export class Http2Sessions {
  readonly #sessions = new Set<Http2Session>();
  readonly #exchanges = new Set<Http2Exchange>();
  readonly #announced = new WeakSet<Http2Session>();
  #closing = false;

  /** A server of HTTP/1.1 alone has no session and costs nothing. */
  follow(server: Server, observer: Http2Observer): void {
    const onRequest = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
      // A server that speaks both tells of both here.
      if (request.httpVersionMajor < 2) return;
      const { session } = request.stream;
      const startedAt = performance.now();
      const exchange = { request, response, session, startedAt, scope: undefined };
      this.#exchanges.add(exchange);
      if (this.#closing) this.#announce(session);
      observer.begun(exchange);
      response.once('close', () => {
        this.#exchanges.delete(exchange);
        observer.over(exchange);
      });
    };
    server.once('session', () => server.prependListener('request', onRequest as never));
    server.on('session', (session: Http2Session) => {
      this.#sessions.add(session);
      observer.opened(session);
      session.once('close', () => this.#sessions.delete(session));
    });
  }

  /** Requests that are not over, in the order in which they began. */
  get exchanges(): Iterable<Http2Exchange> {
    return this.#exchanges;
  }

  /** New requests should go elsewhere, and are served here anyway. Idle sessions are told with their next request. */
  announceClose(): void {
    this.#closing = true;
    for (const { session } of this.#exchanges) this.#announce(session);
  }

  #announce(session: Http2Session | undefined): void {
    if (session === undefined || this.#announced.has(session)) return;
    this.#announced.add(session);
    announceClose(session);
  }

  /** GOAWAY: what has begun is finished, what is new goes elsewhere. */
  close(): void {
    for (const session of this.#sessions) if (!session.closed) session.close();
  }

  /** Cuts off what is left, so that its clients can see that it was. */
  destroy(): void {
    // A session that is destroyed ends its streams as if they were complete.
    for (const { response } of this.#exchanges) response.stream.close(CANCEL);
    for (const session of this.#sessions) session.destroy();
  }
}

/** A request of HTTP/2 as one of HTTP/1: what is read of them is the same on both. */
export function asHttp1({ request, response }: Http2Exchange): [IncomingMessage, ServerResponse] {
  return [request, response] as unknown as [IncomingMessage, ServerResponse];
}
