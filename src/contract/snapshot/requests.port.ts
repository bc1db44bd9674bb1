import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Gets each request that has ended, except event streams and WebSockets, whose durations only show
 * how long their clients stayed. It runs on the request path: it must be cheap and must not throw.
 */
export interface ResponseObserver {
  /**
   * Its response was sent.
   *
   * @param bytes size of the response with its head; `undefined` where it is not known (HTTP/2).
   */
  finished(
    request: IncomingMessage,
    response: ServerResponse,
    durationMs: number,
    bytes: number | undefined,
  ): void;
  /** The client went away before its response was complete. */
  aborted(request: IncomingMessage): void;
}

/** A request whose work runs in one asynchronous context. */
export interface RequestScope {
  /** The response that waits for the work; `undefined` once it is sent or the client is gone. */
  readonly waiting: ServerResponse | undefined;
}

/** Enters an asynchronous context of that scope, from which the work for its request begins. */
export type EnterScope = (scope: RequestScope) => void;

/** The requests of this process. */
export interface RequestsPort {
  /** Whether the app's own port shows more than that it is up. */
  readonly showsDetails: boolean;
  observeResponses(observer: ResponseObserver): void;
  /** Calls `enter` when the scope of a request begins, and again with each part of its body. */
  followScopes(enter: EnterScope | undefined): void;
  /**
   * Calls `gone` once if the client goes away before its answer is complete; at once if it is gone.
   *
   * @returns a function that ends the watch.
   */
  watchClient(response: ServerResponse, gone: () => void): () => void;
}
