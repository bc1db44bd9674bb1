import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { CloseNotice } from './close-notice.js';
import { endEventStream, isOpenEventStream } from './event-stream.js';
import { closeGracefully } from './goaway.js';
import type { Scope } from './request-scopes.js';
import type { RequestTracker } from './request-tracker.js';
import { sayGoingAway } from './web-socket.js';

/** Node's message at the beginning of a request and at the end of its response. */
export interface HttpMessage {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: TrackedSocket;
}

/** Over HTTP/2 the session is closed; no response says so. */
const TO_SEND = { sent: false, onRequest: () => true };
const SENT = { sent: true, onRequest: () => true };

export const CONNECTION = Symbol('nestjs-cluster.connection');

export type TrackedSocket = Socket & { [CONNECTION]?: Connection };

/** An HTTP/2 session knows its connection: `session.socket` is a proxy, and slow. */
export type TrackedSession = Http2Session & { [CONNECTION]?: Connection };

/** The socket below TLS: set by Node 20 to 26, and not documented. */
export type SecureSocket = TrackedSocket & { readonly _parent?: TrackedSocket };

/** What is known of an open connection. Kept on its socket: no lookup on the request path. */
export class Connection {
  /** Requests begun and not answered. More than one only with pipelining. */
  inFlight = 0;
  /** When the oldest request in flight began, or the last one; at first, when it was opened. Monotonic ms. */
  startedAt = performance.now();
  /** The scope of that request, if anybody follows scopes. */
  scope: Scope | undefined;
  /** The requests behind it: responses leave in the order of their requests. */
  pipelined: Pick<Connection, 'startedAt' | 'scope'>[] | undefined;
  /** The response to the youngest request in flight, for the drain to mark. */
  response: ServerResponse | undefined;
  webSocket = false;
  /** Set if it speaks HTTP/2. */
  session: Http2Session | undefined;
  /** Requests answered on it. */
  answered = 0;
  /** The number of them that were answered in the last counted interval. */
  recentRequests = 0;
  /** Its client sends requests ahead of the answers, which come too soon for {@link pipelined} to show it. */
  pipelines = false;
  /** Called if its client goes away: for what is computed for it. */
  watchers: Set<() => void> | undefined;
  /** Its client is to connect again. */
  closeNotice: Pick<CloseNotice, 'sent' | 'onRequest'> | undefined;
  #counted = 0;
  /** Bytes sent on it that belong to requests that are answered. */
  #bytesAccounted = 0;
  /** The drain has asked the peer of the WebSocket to close. */
  #saidGoingAway = false;

  constructor(
    readonly owner: RequestTracker,
    /** With TLS first the bare socket, then the one that HTTP speaks on. */
    public socket: TrackedSocket,
  ) {}

  /** A request has begun. On the request path. */
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

  /** The oldest request in flight has been answered. On the request path. */
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

  /** It is closed: what is in flight will not be answered. */
  abandon(): void {
    for (const { scope } of [this, ...(this.pipelined ?? [])]) scope?.abandon();
    this.inFlight = 0;
    this.response = this.scope = this.pipelined = undefined;
    for (const leave of this.watchers ?? []) leave();
  }

  /** Its client can be asked to connect again, and has not been yet. */
  get movable(): boolean {
    const pipelines = this.pipelines || this.pipelined !== undefined;
    return !this.webSocket && !pipelines && this.closeNotice === undefined;
  }

  /** Its client is to connect again, and most likely to reach another worker. */
  leave(): void {
    this.closeNotice = this.session === undefined ? new CloseNotice() : TO_SEND;
  }

  /** A request has begun on its session: the moment for a GOAWAY, see {@link closeGracefully}. */
  streamBegun(): void {
    if (this.closeNotice !== TO_SEND || this.session === undefined) return;
    this.closeNotice = SENT;
    closeGracefully(this.session);
  }

  /** It may stay after all, unless its client has been asked already. */
  stay(): void {
    if (!this.closeNotice?.sent) this.closeNotice = undefined;
  }

  /** A request has been answered. @returns the bytes of its response. On the request path. */
  accountBytes(): number {
    const { bytesWritten } = this.socket;
    const bytes = bytesWritten - this.#bytesAccounted;
    this.#bytesAccounted = bytesWritten;
    return bytes;
  }

  /** Ends the interval of {@link recentRequests}. */
  countRecent(): number {
    this.recentRequests = this.answered - this.#counted;
    this.#counted = this.answered;
    return this.recentRequests;
  }

  /** Asks a WebSocket or an event stream to end; called again, it does nothing more. */
  endEndless(): void {
    const { socket, response } = this;
    // Until the answer to the upgrade is written, it is HTTP.
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
