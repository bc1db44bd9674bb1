import type { IncomingMessage, ServerResponse } from 'node:http';

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

interface ClosingConnection {
  readonly socket: { readonly bytesRead: number };
  readonly inFlight: number;
  readonly response: ServerResponse | undefined;
}

/** Asks the client of an HTTP/1.1 connection to connect again, by a header of a response. */
export class CloseNotice {
  #asked: ServerResponse | undefined;
  /** The number of bytes received on the connection when its last request began. */
  #bytesRead: number | undefined;

  get sent(): boolean {
    return this.#asked !== undefined;
  }

  /**
   * A request has begun on the connection.
   *
   * @returns whether the connection may still be closed: `false` if the client pipelines, because the
   * requests that it sent ahead would be lost.
   */
  onRequest(
    leaving: ClosingConnection,
    request: IncomingMessage,
    response: ServerResponse,
  ): boolean {
    const { bytesRead } = leaving.socket;
    if (leaving.inFlight > 1 || bytesRead === this.#bytesRead) {
      if (this.#asked !== undefined) takeBack(this.#asked);
      this.#asked = undefined;
      return false;
    }
    // Only a second request shows that the client waits for each response and does not pipeline.
    const seenToWait = this.#bytesRead !== undefined;
    this.#bytesRead = bytesRead;
    if (!seenToWait) return true;
    const ask = (): void => {
      const alone = leaving.inFlight === 1 && leaving.response === response;
      if (alone && askToClose(response)) this.#asked = response;
    };
    if (hasBody(request)) request.once('end', ask);
    else ask();
    return true;
  }
}
