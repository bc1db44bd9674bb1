import type { IncomingMessage, ServerResponse } from 'node:http';

const ASKED = Symbol('nestjs-cluster.asked-to-close');
type MarkedResponse = ServerResponse & { [ASKED]?: true };

/**
 * Lets the response carry `Connection: close` (RFC 9112, 9.6), unless its head has left already or
 * its connection would close anyway.
 *
 * @returns whether it asks now, and would not have asked otherwise.
 */
export function askToClose(response: MarkedResponse): boolean {
  if (response.headersSent || !response.shouldKeepAlive) return false;
  response.shouldKeepAlive = false;
  response[ASKED] = true;
  return true;
}

/** Undoes {@link askToClose}, unless the head has left. */
export function takeBack(response: MarkedResponse): void {
  if (response[ASKED] && !response.headersSent) response.shouldKeepAlive = true;
}

/**
 * Whether a request announces a body. If it is answered with `Connection: close` before all of the
 * body was read, the connection is reset, and the answer is lost.
 */
export function hasBody({ headers }: IncomingMessage): boolean {
  return (
    headers['transfer-encoding'] !== undefined ||
    (headers['content-length'] !== undefined && headers['content-length'] !== '0')
  );
}

/** The part of a connection that a notice reads. */
interface ClosingConnection {
  readonly socket: { readonly bytesRead: number };
  readonly inFlight: number;
  readonly response: ServerResponse | undefined;
}

/** Asks the client of an HTTP/1.1 connection to close it and connect again, request by request. */
export class CloseNotice {
  /** The response that asks. */
  #asked: ServerResponse | undefined;
  #bytesRead: number | undefined;

  /** The client was asked to connect again. */
  get sent(): boolean {
    return this.#asked !== undefined;
  }

  /**
   * A request has begun on the connection.
   *
   * @returns whether the connection may still be closed. If the client pipelines, it may not: the
   * requests that were sent ahead would be lost.
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
    // Only the second request shows that the client waits for answers.
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
