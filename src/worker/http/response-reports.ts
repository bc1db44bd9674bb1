import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ResponseObserver } from '../../contract/snapshot/index.js';
import type { Connection } from './connection.js';
import { isEventStream } from './event-stream.js';

export class ResponseReports {
  /** The observer of this process, if it has one; a process has at most one. */
  observer: ResponseObserver | undefined;
  /** Set while this process destroys connections. Their requests are not reported as aborted. */
  cutting = false;

  /** The response was sent. `bytes` is unknown over HTTP/2. Runs for every request. */
  sent(
    request: IncomingMessage,
    response: ServerResponse,
    durationMs: number,
    bytes: number | undefined,
  ): void {
    if (this.observer === undefined) return;
    // A response with a known length is not an event stream, so its content type is not read:
    // reading it would make a light request 2 % slower.
    if (response.chunkedEncoding !== false && isEventStream(response)) return;
    this.observer.finished(request, response, durationMs, bytes);
  }

  /** The connection is closed. Reports at most one request as aborted: the newest in flight. */
  lost({ response, webSocket }: Pick<Connection, 'response' | 'webSocket'>): void {
    if (response !== undefined && !webSocket) this.#aborted(response);
  }

  /** An HTTP/2 stream has ended. The size of its response is unknown, because frames are not counted. */
  streamOver(request: IncomingMessage, response: ServerResponse, durationMs: number): void {
    // A CONNECT stream can be a WebSocket over HTTP/2 (RFC 8441), which is not a response.
    if (request.method === 'CONNECT') return;
    if (response.writableEnded) this.sent(request, response, durationMs, undefined);
    else this.#aborted(response);
  }

  /** The connection or stream was closed before the response was complete. */
  #aborted(response: ServerResponse): void {
    if (this.cutting || (response.headersSent && isEventStream(response))) return;
    this.observer?.aborted(response.req);
  }
}
