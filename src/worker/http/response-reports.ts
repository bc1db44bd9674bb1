import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ResponseObserver } from '../../contract/snapshot/index.js';
import type { Beat } from '../watchdog/beat.js';
import type { NotedRequests } from '../watchdog/noted-requests.js';
import { CoarseClock } from './coarse-clock.js';
import type { Connection } from './connection.js';
import { isEventStream } from './event-stream.js';

/** Reports finished requests to the {@link ResponseObserver}, and open requests to the watchdog. */
export class ResponseReports {
  /** The observer of this process, if it has one; a process has at most one. */
  observer: ResponseObserver | undefined;
  /** The list of requests in flight for the watchdog, if the watchdog runs. */
  noted: NotedRequests | undefined;
  /** Set while this process destroys connections. Their requests are not reported as aborted. */
  cutting = false;
  readonly #clock = new CoarseClock();

  constructor(private readonly beat?: Pick<Beat, 'isFast' | 'quicken'>) {}

  /**
   * A request has begun. Runs for every request.
   *
   * @returns the request's start in monotonic ms, exact only if there is an observer.
   */
  begun(request: IncomingMessage): number {
    const isObserved = this.observer !== undefined;
    const now = isObserved ? performance.now() : this.#clock.now();
    if (isObserved && this.beat?.isFast === false) this.beat.quicken();
    this.noted?.began(request, now);
    return now;
  }

  /** The response was sent. @returns when, as {@link begun}. Runs for every request. */
  sent(request: IncomingMessage, response: ServerResponse, startedAt: number, bytes: number) {
    this.noted?.ended(request);
    if (this.observer === undefined) return this.#clock.now();
    const now = performance.now();
    this.#finished(request, response, now - startedAt, bytes);
    return now;
  }

  /** The connection is closed. Reports at most one request as aborted: the newest in flight. */
  lost({
    response,
    socket,
    webSocket,
  }: Pick<Connection, 'response' | 'socket' | 'webSocket'>): void {
    this.noted?.left(socket);
    if (response !== undefined && !webSocket) this.#aborted(response);
  }

  /** An HTTP/2 stream has ended. The size of its response is unknown, because frames are not counted. */
  streamOver(request: IncomingMessage, response: ServerResponse, durationMs: number): void {
    this.noted?.ended(request);
    // A CONNECT stream can be a WebSocket over HTTP/2 (RFC 8441), which is not a response.
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
    // A response with a known length is not an event stream, so its content type is not read:
    // reading it would make a light request 2 % slower.
    if (response.chunkedEncoding !== false && isEventStream(response)) return;
    this.observer?.finished(request, response, durationMs, bytes);
  }

  /** The connection or stream was closed before the response was complete. */
  #aborted(response: ServerResponse): void {
    if (this.cutting || (response.headersSent && isEventStream(response))) return;
    this.observer?.aborted(response.req);
  }
}
