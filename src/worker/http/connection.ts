import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import { endEventStream, isOpenEventStream } from './event-stream.js';
import { CloseNotice } from './close-notice.js';
import { closeGracefully } from './http2-sessions.js';
import type { Scope } from './request-scopes.js';
import { sayGoingAway } from './web-socket.js';

/** Node's message at the beginning of a request and at the end of its response. */
export interface HttpMessage {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: TrackedSocket;
}

/** Over HTTP/2 it is the session that is closed, not a response that says so. */
const TO_SEND = { sent: false, onRequest: () => true };
const SENT = { sent: true, onRequest: () => true };

export const CONNECTION = Symbol('nestjs-cluster.connection');

export type TrackedSocket = Socket & { [CONNECTION]?: Connection };

/** An HTTP/2 session knows its connection: `session.socket` is a proxy, and slow. */
export type TrackedSession = Http2Session & { [CONNECTION]?: Connection };

/** The socket below TLS: set by Node 20 to 26, and not documented. */
export type SecureSocket = TrackedSocket & { readonly _parent?: TrackedSocket };

/** Hears when a connection closes. */
export interface ConnectionOwner {
  forget(connection: Connection): void;
}

/** What is known of an open connection. Kept on its socket: no lookup on the request path. */
export class Connection {
  /** Requests begun and not answered. More than one only with pipelining. */
  inFlight = 0;
  /** When the oldest request in flight began, or the last one; at first, when it was opened. Monotonic ms. */
  startedAt = performance.now();
  /** Its scope, where anybody asked for one. */
  scope: Scope | undefined;
  /** The same of those behind it: responses leave in the order of their requests. */
  pipelined: Pick<Connection, 'startedAt' | 'scope'>[] | undefined;
  /** The response to the youngest request in flight, for the drain to mark. */
  response: ServerResponse | undefined;
  webSocket = false;
  /** Set where it speaks HTTP/2. */
  session: Http2Session | undefined;
  /** Requests answered on it. */
  answered = 0;
  /** The number of them that were answered in the last counted interval. */
  recentRequests = 0;
  /** Its client sends requests ahead of the answers, which come too soon for {@link pipelined} to show it. */
  pipelines = false;
  /** To be called if its client goes away: for what is computed for it. */
  watchers: Set<() => void> | undefined;
  /** Its client is to connect again. */
  closeNotice: Pick<CloseNotice, 'sent' | 'onRequest'> | undefined;
  #counted = 0;
  /** Bytes sent on it that belong to requests that are answered. */
  #bytesAccounted = 0;
  /** The drain has asked the peer of the WebSocket to close. */
  #saidGoodbye = false;

  constructor(
    readonly owner: ConnectionOwner,
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

  /** It is HTTP still until the answer to the upgrade is written, which may have happened already. */
  get #isOpenWebSocket(): boolean {
    const { webSocket, inFlight, socket } = this;
    return webSocket && inFlight === 0 && socket.bytesWritten > this.#bytesAccounted;
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

  /** Asks what has no end of its own to end; called again, it does nothing more. */
  endEndless(): void {
    const { socket, response } = this;
    if (this.#isOpenWebSocket && !this.#saidGoodbye) {
      this.#saidGoodbye = true;
      sayGoingAway(socket);
    }
    if (response !== undefined && isOpenEventStream(response)) {
      endEventStream(response, () => socket.end());
    }
  }
}
