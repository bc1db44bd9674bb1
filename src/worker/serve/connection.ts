import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Scope } from './request-scope.js';
import type { RequestTracker } from './tracker.js';

/** Node publishes this on its diagnostics channels when a request starts and when its response ends. */
export interface HttpMessage {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: TrackedSocket;
}

export const CONNECTION = Symbol('nestjs-cluster.connection');

export type TrackedSocket = Socket & { [CONNECTION]?: Connection };

/** The connection is kept on the session, because `session.socket` is a slow proxy. */
export type TrackedSession = Http2Session & { [CONNECTION]?: Connection };

/** `_parent` is the TCP socket below TLS. Undocumented, set by Node 20 to 26. */
export type SecureSocket = TrackedSocket & { readonly _parent?: TrackedSocket };

/** The `extension` room sets this on a WebSocket's socket if it closes the WebSocket itself. */
const CLOSED_BY_OWNER = Symbol.for('nestjs-cluster.closed-by-owner');

/** An unmasked WebSocket close frame (RFC 6455, 5.5.1): 1012, "service restart". After 1001, some do not reconnect. */
const SERVICE_RESTART = Buffer.from([0x88, 0x02, 0x03, 0xf4]);

/** The state of an open connection. Kept as a property of the socket, so that requests need no lookup. */
export class Connection {
  /** The number of HTTP/1.1 requests in flight. More than 1 only if the client pipelines. */
  inFlight = 0;
  /**
   * When the oldest request in flight began, in monotonic ms. On an idle connection, the time of the
   * last response, or of the opening if there was no request.
   */
  startedAt = performance.now();
  /** The scope of the oldest request in flight, if scopes are enabled. */
  scope: Scope | undefined;
  /** The requests in flight except the oldest, in the order of their responses. */
  pipelined: Pick<Connection, 'startedAt' | 'scope'>[] | undefined;
  /** The response to the newest request in flight. Only this response may carry `Connection: close`. */
  response: ServerResponse | undefined;
  webSocket = false;
  /** Whether the connection is being sent to another worker. */
  isHandedOver = false;
  session: Http2Session | undefined;
  answered = 0;
  /** The number of requests answered in the last load report's interval. */
  recentRequests = 0;
  /** Set permanently once the client has pipelined. {@link pipelined} does not show it if responses are fast. */
  pipelines = false;
  /** Set if the client must reconnect. */
  closeNotice: CloseNotice | undefined;
  #counted = 0;
  /** The number of bytes sent up to the end of the last response. */
  #bytesAccounted = 0;

  constructor(
    readonly owner: RequestTracker,
    /** With TLS, the TCP socket until the handshake, then the TLS socket. */
    public socket: TrackedSocket,
  ) {}

  /** Called when a request begins. Must be cheap. */
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

  /** Called when the oldest request in flight is answered. Must be cheap. */
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

  /** Called when the connection closes with requests in flight. */
  abandon(): void {
    if (this.inFlight === 0) return;
    for (const { scope } of [this, ...(this.pipelined ?? [])]) scope?.end();
    this.inFlight = 0;
    this.response = this.scope = this.pipelined = undefined;
  }

  /** Whether the client can be asked to reconnect and has not been asked yet. */
  get movable(): boolean {
    const pipelines = this.pipelines || this.pipelined !== undefined;
    return !this.webSocket && !pipelines && this.closeNotice === undefined;
  }

  /** Asks the client to reconnect, most likely to another worker, on one of its next requests. */
  leave(): void {
    this.closeNotice = new CloseNotice();
  }

  /** Called when a request begins on the HTTP/2 session. @returns whether to send the GOAWAY now. */
  streamBegun(): boolean {
    if (this.closeNotice?.sent !== false) return false;
    this.closeNotice.sent = true;
    return true;
  }

  /** Cancels {@link leave} if the client has not been asked yet. */
  stay(): void {
    if (!this.closeNotice?.sent) this.closeNotice = undefined;
  }

  /** @returns the size of the last response, in bytes. Called at the end of every response. */
  accountBytes(): number {
    const { bytesWritten } = this.socket;
    const bytes = bytesWritten - this.#bytesAccounted;
    this.#bytesAccounted = bytesWritten;
    return bytes;
  }

  /** Ends the interval of a load report. @returns the number of requests answered in it. */
  countRecent(): number {
    this.recentRequests = this.answered - this.#counted;
    this.#counted = this.answered;
    return this.recentRequests;
  }

  /** Whether this is an open WebSocket or event stream, which a drain must end. */
  get isEndless(): boolean {
    const { socket, response } = this;
    if (response !== undefined && isOpenEventStream(response)) return true;
    // Frames can be sent only after the response to the upgrade request has been written.
    const isOpen = this.inFlight === 0 && socket.bytesWritten > this.#bytesAccounted;
    return this.webSocket && isOpen && !(CLOSED_BY_OWNER in socket);
  }

  /**
   * Ends an event stream, or sends a WebSocket's close frame. This works with any library: a control
   * frame may be sent between any two frames, and libraries write each frame in one call. The library
   * treats the client's reply as a close by the client.
   */
  endEndless(): void {
    const { socket, response } = this;
    if (response !== undefined) endEventStream(response, () => socket.end());
    else if (socket.writable) socket.write(SERVICE_RESTART);
  }
}

/** `_header` is the text of the sent headers. Headers passed to `writeHead()` are only there. */
type SentResponse = ServerResponse & { readonly _header?: string | null };

const EVENT_STREAM = 'text/event-stream';

/** Whether a response is a stream of server-sent events. Call it once the headers are sent. */
export function isEventStream(response: SentResponse): boolean {
  const type = response.getHeader('content-type') ?? response._header;
  return typeof type === 'string' && type.includes(EVENT_STREAM);
}

export function isOpenEventStream(response: SentResponse): boolean {
  if (!response.headersSent || response.writableEnded) return false;
  return isEventStream(response);
}

/** Ends an event stream. The client reconnects to another worker. */
export function endEventStream(response: ServerResponse, ended = (): void => {}): void {
  response.end(ended);
  // The app may write again before it notices the end. Over HTTP/2 this would reset the stream, and
  // over HTTP/1.1 it would be an uncaught error.
  response.write = () => true;
  response.end = () => response;
}

const ASKED = Symbol('nestjs-cluster.asked-to-close');
type MarkedResponse = ServerResponse & { [ASKED]?: true };

/**
 * Sets `Connection: close` on the response (RFC 9112, 9.6).
 *
 * @returns `false` if the headers have been sent or the connection would close anyway.
 */
export function askToClose(response: MarkedResponse): boolean {
  if (response.headersSent || !response.shouldKeepAlive) return false;
  response.shouldKeepAlive = false;
  response[ASKED] = true;
  return true;
}

/** Undoes {@link askToClose} if the headers have not been sent. */
export function takeBack(response: MarkedResponse): void {
  if (response[ASKED] && !response.headersSent) response.shouldKeepAlive = true;
}

/**
 * `Connection: close` must wait for the end of a body: if the connection closes before the whole body
 * was read, it is reset and the response is lost.
 */
export function hasBody({ headers }: IncomingMessage): boolean {
  return (
    headers['transfer-encoding'] !== undefined ||
    (headers['content-length'] !== undefined && headers['content-length'] !== '0')
  );
}

/** Asks a client to reconnect, by `Connection: close` or, over HTTP/2, a GOAWAY. */
class CloseNotice {
  sent = false;
  #asked: ServerResponse | undefined;
  /** The number of bytes received when the last request began. */
  #bytesRead: number | undefined;

  /**
   * Called when a request begins on an HTTP/1.1 connection.
   *
   * @returns `false` if the client pipelines. The connection must stay open, because a close would
   *   lose pipelined requests.
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
    // Only the second request shows that the client does not pipeline.
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
