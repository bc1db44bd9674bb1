import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse, Http2Session } from 'node:http2';
import { CONNECTION, type TrackedSession, type TrackedSocket } from './connection.js';
import { announceClose } from './goaway.js';
import type { Scope } from './request-scopes.js';
import type { RequestTracker } from './request-tracker.js';

/** A request of HTTP/2 that is not over. */
interface Http2Exchange {
  readonly request: Http2ServerRequest;
  readonly response: Http2ServerResponse;
  readonly session: TrackedSession | undefined;
  /** Monotonic ms. */
  readonly startedAt: number;
  readonly scope: Scope | undefined;
}

/** RFC 9113, 7. Node's own constants would load its HTTP/2 into every worker. */
const CANCEL = 0x8;

/** The HTTP/2 sessions of servers: Node's channels for HTTP/1.1 know nothing of them. */
export class Http2Sessions {
  readonly #sessions = new Set<Http2Session>();
  readonly #exchanges = new Set<Http2Exchange>();
  readonly #announced = new WeakSet<Http2Session>();
  #closing = false;

  constructor(private readonly tracker: RequestTracker) {}

  /** A server of HTTP/1.1 alone has no session and costs nothing. */
  follow(server: Server): void {
    server.once('session', () => server.prependListener('request', this.#onRequest as never));
    server.on('session', (session: TrackedSession) => {
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
      // With TLS the session's socket is the one that HTTP speaks on, known since it was secured.
      const connection = (session.socket as TrackedSocket)[CONNECTION];
      if (connection === undefined) return;
      session[CONNECTION] = connection;
      connection.session = session;
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

  readonly #onRequest = (request: Http2ServerRequest, response: Http2ServerResponse): void => {
    // A server that speaks both tells of both here.
    if (request.httpVersionMajor < 2) return;
    const { tracker } = this;
    const session: TrackedSession | undefined = request.stream.session;
    const startedAt = performance.now();
    tracker.requestsInFlight += 1;
    tracker.reports.noted?.began(request, startedAt);
    const scope = tracker.scopes.begin(...asHttp1(request, response));
    const exchange = { request, response, session, startedAt, scope };
    this.#exchanges.add(exchange);
    if (this.#closing) this.#announce(session);
    session?.[CONNECTION]?.streamBegun();
    response.once('close', () => this.#over(exchange));
  };

  #over(exchange: Http2Exchange): void {
    this.#exchanges.delete(exchange);
    const { tracker } = this;
    const { request, response, session, startedAt, scope } = exchange;
    const connection = session?.[CONNECTION];
    if (connection !== undefined) connection.answered += 1;
    tracker.requestsInFlight -= 1;
    if (response.writableEnded) {
      tracker.requestsTotal += 1;
      scope?.end();
    } else {
      scope?.abandon();
    }
    tracker.reports.streamOver(...asHttp1(request, response), performance.now() - startedAt);
  }

  #announce(session: Http2Session | undefined): void {
    if (session === undefined || this.#announced.has(session)) return;
    this.#announced.add(session);
    announceClose(session);
  }
}

/** A request of HTTP/2 as one of HTTP/1: what is read of them is the same on both. */
function asHttp1(
  request: Http2ServerRequest,
  response: Http2ServerResponse,
): [IncomingMessage, ServerResponse] {
  return [request, response] as unknown as [IncomingMessage, ServerResponse];
}
