import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Is called for each request that has ended, except event streams and WebSockets, whose durations
 * only show how long their clients stayed. Runs for every request: must be cheap, must not throw.
 */
export interface ResponseObserver {
  /**
   * The response was sent.
   *
   * @param bytes size of the response with its head; `undefined` if it is not known (HTTP/2).
   */
  finished(
    request: IncomingMessage,
    response: ServerResponse,
    durationMs: number,
    bytes: number | undefined,
  ): void;
  /** The client disconnected before the response was complete. */
  aborted(request: IncomingMessage): void;
}

/** A request whose work runs in one asynchronous context. */
export interface RequestScope {
  /** The response that waits for the work; `undefined` once it is sent or the client has disconnected. */
  readonly waiting: ServerResponse | undefined;
}

/** The requests of this process. */
export interface RequestsPort {
  /** Whether the app's own port shows details, not only whether the app is up. */
  readonly showsDetails: boolean;
  observeResponses(observer: ResponseObserver): void;
  /** Whether each request runs in an asynchronous context of its own. */
  followScopes(on: boolean): void;
  /** The scope in whose context the current code runs; `undefined` if there is none. */
  readonly scope: RequestScope | undefined;
  /**
   * Calls `gone` once if the client disconnects, or has disconnected, before the response is
   * complete.
   *
   * @returns a function that ends the watch.
   */
  watchClient(response: ServerResponse, gone: () => void): () => void;
}
