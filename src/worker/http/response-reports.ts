import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ResponseObserver } from '../../contract/snapshot/index.js';
import type { NotedRequests } from '../watchdog/noted-requests.js';
import { CoarseClock } from './coarse-clock.js';
import type { Connection } from './connection.js';
import { isEventStream } from './event-stream.js';

/** Tells the {@link ResponseObserver} which requests are over, and the watchdog which are in flight. */
export class ResponseReports {
  /** One at most. */
  observer: ResponseObserver | undefined;
  /** Kept for a watchdog, if there is one. */
  noted: NotedRequests | undefined;
  /** Connections are cut off by this side: their clients did not leave. */
  cutting = false;
  readonly #clock = new CoarseClock();

  /** A request has begun. On the request path. @returns when, exactly if anybody measures. */
  begun(request: IncomingMessage): number {
    const now = this.observer === undefined ? this.#clock.now() : performance.now();
    this.noted?.began(request, now);
    return now;
  }

  /** The response to a request that began then was sent. On the request path. */
  sent(request: IncomingMessage, response: ServerResponse, startedAt: number, bytes: number): void {
    this.noted?.ended(request);
    if (this.observer === undefined) return;
    this.#finished(request, response, performance.now() - startedAt, bytes);
  }

  /** The connection is gone. The request that was begun last stands for those it was pipelined with. */
  lost({
    response,
    socket,
    webSocket,
  }: Pick<Connection, 'response' | 'socket' | 'webSocket'>): void {
    this.noted?.left(socket);
    if (response !== undefined && !webSocket) this.#aborted(response);
  }

  /** A stream of HTTP/2 is over, be it answered or not. Its bytes are not known: frames are not counted. */
  streamOver(request: IncomingMessage, response: ServerResponse, durationMs: number): void {
    this.noted?.ended(request);
    // A WebSocket over HTTP/2 (RFC 8441) is one.
    if (this.observer === undefined || request.method === 'CONNECT') return;
    if (response.writableEnded) this.#finished(request, response, durationMs, undefined);
    else this.#aborted(response);
  }

  #finished(
    request: IncomingMessage,
    response: ServerResponse,
    durationMs: number,
    bytes: number | undefined,
  ): void {
    // An answer with a length is not a stream. To read its type would cost a light request 2 % more.
    if (response.chunkedEncoding !== false && isEventStream(response)) return;
    this.observer?.finished(request, response, durationMs, bytes);
  }

  /** The connection is gone, and the response was not complete. */
  #aborted(response: ServerResponse): void {
    if (this.cutting || (response.headersSent && isEventStream(response))) return;
    this.observer?.aborted(response.req);
  }
}
