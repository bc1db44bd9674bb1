import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Scope } from './request-scope.js';
import type { RequestTracker } from './tracker.js';

/** The message that Node publishes at the start of a request and at the end of its response. */
export interface HttpMessage {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: TrackedSocket;
}

export const CONNECTION = Symbol('nestjs-cluster.connection');

export type TrackedSocket = Socket & { [CONNECTION]?: Connection };

/** An HTTP/2 session that holds its connection, because `session.socket` is a slow proxy. */
export type TrackedSession = Http2Session & { [CONNECTION]?: Connection };

/** `_parent` is the socket below TLS. Node 20 to 26 set the property and do not document it. */
export type SecureSocket = TrackedSocket & { readonly _parent?: TrackedSocket };

/** `extension` marks a socket whose owner chooses when to ask the peer to close. */
const CLOSED_BY_OWNER = Symbol.for('nestjs-cluster.closed-by-owner');

/** A server's close frame (RFC 6455, 5.5.1) with status 1001, "going away". */
const GOING_AWAY = Buffer.from([0x88, 0x02, 0x03, 0xe9]);

/** The state of an open connection. Kept on its socket, so that requests need no lookup. */
export class Connection {
  /** The number of open HTTP/1.1 requests. More than 1 only if the client pipelines. */
  inFlight = 0;
  /**
   * When the oldest request in flight began, in monotonic ms. If no request is in flight, when the
   * last request was answered. Before the first request, when the connection was opened.
   */
  startedAt = performance.now();
  /** The scope of the oldest request in flight, if scopes are in use. */
  scope: Scope | undefined;
  /** The requests in flight after the oldest, in order. Their responses are sent in the same order. */
  pipelined: Pick<Connection, 'startedAt' | 'scope'>[] | undefined;
  /** The response to the newest request in flight. The drain sets `Connection: close` on it. */
  response: ServerResponse | undefined;
  webSocket = false;
  /** Whether the connection is being sent to another worker. */
  isHandedOver = false;
  session: Http2Session | undefined;
  answered = 0;
  /** The number of requests answered in the last interval, see {@link countRecent}. */
  recentRequests = 0;
  /** Set if the client pipelines, even if {@link pipelined} is empty because responses are fast. */
  pipelines = false;
  /** Set if the client is to connect again. */
  closeNotice: CloseNotice | undefined;
  #counted = 0;
  /** The number of bytes sent on the connection up to the end of the last response. */
  #bytesAccounted = 0;

  constructor(
    readonly owner: RequestTracker,
    /** With TLS, first the TCP socket, and after the handshake the TLS socket. */
    public socket: TrackedSocket,
  ) {}

  /** A request has begun. Runs for every request, so it must be cheap. */
  begin(response: ServerResponse, startedAt: number, scope: Scope | undefined): void {
    this.inFlight += 1;
    this.response = response;
    if (this.inFlight > 1) {
      (this.pipelined ??= []).push({ startedAt, scope });
      return;
    }
    this.startedAt = startedAt;
    this.scope = scope;
  }

  /** The oldest request in flight was answered. Runs for every request, so it must be cheap. */
  finish(): void {
    this.inFlight -= 1;
    this.answered += 1;
    this.scope?.end();
    if (this.inFlight === 0) {
      this.response = this.scope = undefined;
      return;
    }
    const next = this.pipelined!.shift()!;
    this.startedAt = next.startedAt;
    this.scope = next.scope;
  }

  /** The connection is closed: requests in flight will not be answered. */
  abandon(): void {
    if (this.inFlight === 0) return;
    for (const { scope } of [this, ...(this.pipelined ?? [])]) scope?.end();
    this.inFlight = 0;
    this.response = this.scope = this.pipelined = undefined;
  }

  /** Whether the client can be asked to connect again and has not been asked yet. */
  get movable(): boolean {
    const pipelines = this.pipelines || this.pipelined !== undefined;
    return !this.webSocket && !pipelines && this.closeNotice === undefined;
  }

  /** Makes the connection ask its client to connect again, most likely to another worker. */
  leave(): void {
    this.closeNotice = new CloseNotice();
  }

  /** A request has begun on the HTTP/2 session. @returns whether the session must send its GOAWAY now. */
  streamBegun(): boolean {
    if (this.closeNotice?.sent !== false) return false;
    this.closeNotice.sent = true;
    return true;
  }

  /** Withdraws {@link leave}, unless the client has been asked already. */
  stay(): void {
    if (!this.closeNotice?.sent) this.closeNotice = undefined;
  }

  /** @returns the size of the response that was just sent, in bytes. Runs for every request. */
  accountBytes(): number {
    const { bytesWritten } = this.socket;
    const bytes = bytesWritten - this.#bytesAccounted;
    this.#bytesAccounted = bytesWritten;
    return bytes;
  }

  /** Ends an interval. @returns the number of requests answered in the interval. */
  countRecent(): number {
    this.recentRequests = this.answered - this.#counted;
    this.#counted = this.answered;
    return this.recentRequests;
  }

  /** Whether this is an open WebSocket or event stream. The drain must ask it to end. */
  get isEndless(): boolean {
    const { socket, response } = this;
    if (response !== undefined && isOpenEventStream(response)) return true;
    // Until the response to the upgrade request is written, the connection speaks HTTP: no frame is sent.
    const isOpen = this.inFlight === 0 && socket.bytesWritten > this.#bytesAccounted;
    return this.webSocket && isOpen && !(CLOSED_BY_OWNER in socket);
  }

  /**
   * Asks a WebSocket or an event stream to end. The close frame works with any WebSocket library: a
   * control frame may stand between any two frames, and libraries write each frame in one piece. When
   * the peer answers, the library takes the answer for a close by the peer.
   */
  endEndless(): void {
    const { socket, response } = this;
    if (response !== undefined) endEventStream(response, () => socket.end());
    else if (socket.writable) socket.write(GOING_AWAY);
  }
}

/** `_header` is the text of the sent head. Node keeps headers of `writeHead()` only there. */
type SentResponse = ServerResponse & { readonly _header?: string | null };

const EVENT_STREAM = 'text/event-stream';

/** Whether a response whose head was sent has server-sent events. Runs for every request. */
export function isEventStream(response: SentResponse): boolean {
  const type = response.getHeader('content-type') ?? response._header;
  return typeof type === 'string' && type.includes(EVENT_STREAM);
}

/** Whether a response is a stream of server-sent events that has begun and not ended. */
export function isOpenEventStream(response: SentResponse): boolean {
  if (!response.headersSent || response.writableEnded) return false;
  return isEventStream(response);
}

/** Ends an event stream, which never ends by itself. The client reconnects, to another worker. */
export function endEventStream(response: ServerResponse, ended = (): void => {}): void {
  response.end(ended);
  // Ignores further writes: the app may write again before it learns that the stream has ended.
  // Over HTTP/2 such a write would reset the stream. Over HTTP/1.1 it would be an uncaught error.
  response.write = () => true;
  response.end = () => response;
}

const ASKED = Symbol('nestjs-cluster.asked-to-close');
type MarkedResponse = ServerResponse & { [ASKED]?: true };

/**
 * Sets `Connection: close` on the response (RFC 9112, 9.6), unless its head was sent already or its
 * connection would close anyway.
 *
 * @returns whether this call has set it.
 */
export function askToClose(response: MarkedResponse): boolean {
  if (response.headersSent || !response.shouldKeepAlive) return false;
  response.shouldKeepAlive = false;
  response[ASKED] = true;
  return true;
}

/** Undoes {@link askToClose}, unless the head of the response was sent. */
export function takeBack(response: MarkedResponse): void {
  if (response[ASKED] && !response.headersSent) response.shouldKeepAlive = true;
}

/**
 * Whether a request announces a body. If so, `Connection: close` must wait: if the response is sent
 * before the whole body was read, the connection is reset and the response is lost.
 */
export function hasBody({ headers }: IncomingMessage): boolean {
  return (
    headers['transfer-encoding'] !== undefined ||
    (headers['content-length'] !== undefined && headers['content-length'] !== '0')
  );
}

/** Asks a client to connect again: by a header of a response, over HTTP/2 by a GOAWAY. */
class CloseNotice {
  sent = false;
  #asked: ServerResponse | undefined;
  /** The number of bytes received on the connection when its last request began. */
  #bytesRead: number | undefined;

  /**
   * A request has begun on the HTTP/1.1 connection.
   *
   * @returns whether the connection may still be closed: `false` if the client pipelines, because the
   * requests that it sent ahead would be lost.
   */
  onRequest(
    leaving: Pick<Connection, 'socket' | 'inFlight' | 'response'>,
    request: IncomingMessage,
    response: ServerResponse,
  ): boolean {
    const { bytesRead } = leaving.socket;
    if (leaving.inFlight > 1 || bytesRead === this.#bytesRead) {
      if (this.#asked !== undefined) takeBack(this.#asked);
      return false;
    }
    // Only a second request shows that the client waits for each response and does not pipeline.
    const seenToWait = this.#bytesRead !== undefined;
    this.#bytesRead = bytesRead;
    if (!seenToWait) return true;
    const ask = (): void => {
      if (leaving.response !== response || !askToClose(response)) return;
      this.sent = true;
      this.#asked = response;
    };
    if (hasBody(request)) request.once('end', ask);
    else ask();
    return true;
  }
}
