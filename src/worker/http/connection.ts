import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { CloseNotice } from './close-notice.js';
import { endEventStream, isOpenEventStream } from './event-stream.js';
import { closeGracefully } from './goaway.js';
import type { Scope } from './request-scopes.js';
import type { RequestTracker } from './request-tracker.js';
import { sayGoingAway } from './web-socket.js';

/** The message that Node publishes at the start of a request and at the end of its response. */
export interface HttpMessage {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: TrackedSocket;
}

/** The close notice of an HTTP/2 session, before and after its GOAWAY. It marks no response. */
const TO_SEND = { sent: false, onRequest: () => true };
const SENT = { sent: true, onRequest: () => true };

export const CONNECTION = Symbol('nestjs-cluster.connection');

/** `_httpMessage` is the response that is sent now. Node 20 to 26 set it and do not document it. */
export type TrackedSocket = Socket & {
  [CONNECTION]?: Connection;
  _httpMessage?: { readonly finished: boolean } | null | undefined;
};

/** An HTTP/2 session that holds its connection, because `session.socket` is a slow proxy. */
export type TrackedSession = Http2Session & { [CONNECTION]?: Connection };

/** `_parent` is the socket below TLS. Node 20 to 26 set the property and do not document it. */
export type SecureSocket = TrackedSocket & { readonly _parent?: TrackedSocket };

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
  session: Http2Session | undefined;
  answered = 0;
  /** The number of requests answered in the last interval, see {@link countRecent}. */
  recentRequests = 0;
  /** Set if the client pipelines, even if {@link pipelined} is empty because responses are fast. */
  pipelines = false;
  /** Called if the client disconnects, to stop the work that is done for the client. */
  watchers: Set<() => void> | undefined;
  /** Set if the client is to connect again. */
  closeNotice: Pick<CloseNotice, 'sent' | 'onRequest'> | undefined;
  #counted = 0;
  /** The number of bytes sent on the connection up to the end of the last response. */
  #bytesAccounted = 0;
  /** Whether the drain has asked the peer of the WebSocket to close. */
  #saidGoingAway = false;

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
    for (const { scope } of [this, ...(this.pipelined ?? [])]) scope?.end();
    this.inFlight = 0;
    this.response = this.scope = this.pipelined = undefined;
    for (const leave of this.watchers ?? []) leave();
  }

  /** Whether the client can be asked to connect again and has not been asked yet. */
  get movable(): boolean {
    const pipelines = this.pipelines || this.pipelined !== undefined;
    return !this.webSocket && !pipelines && this.closeNotice === undefined;
  }

  /** Makes the connection ask its client to connect again, most likely to another worker. */
  leave(): void {
    this.closeNotice = this.session === undefined ? new CloseNotice() : TO_SEND;
  }

  /** A request has begun on the HTTP/2 session: sends the GOAWAY, see {@link closeGracefully}. */
  streamBegun(): void {
    if (this.closeNotice !== TO_SEND || this.session === undefined) return;
    this.closeNotice = SENT;
    closeGracefully(this.session);
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

  /** Asks a WebSocket or an event stream to end. A second call does nothing more. */
  endEndless(): void {
    const { socket, response } = this;
    // Until the response to the upgrade request is written, the connection speaks HTTP: no frame is sent.
    const isOpenWebSocket =
      this.webSocket && this.inFlight === 0 && socket.bytesWritten > this.#bytesAccounted;
    if (isOpenWebSocket && !this.#saidGoingAway) {
      this.#saidGoingAway = true;
      sayGoingAway(socket);
    }
    if (response !== undefined && isOpenEventStream(response)) {
      endEventStream(response, () => socket.end());
    }
  }
}
