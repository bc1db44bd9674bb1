import type { IncomingMessage, ServerResponse } from 'node:http';
import { askToClose, hasBody, takeBack } from './closing-response.js';

/** What is asked of the connection that a notice is for. */
export interface ClosingConnection {
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
   * @returns whether the connection may still be closed: not if the client
   *   pipelines: the requests that it sent ahead would be lost.
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
    // Only from its second request on is it seen that the client waits for answers.
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
