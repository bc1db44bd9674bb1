import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { BlockedRequest } from '../../contract/messages.js';
import type { RequestScope } from '../../contract/snapshot/types.js';
import { isOpenEventStream } from './connection.js';
import type { RequestTracker } from './tracker.js';

/** The scope of one request. Code that still runs after the response stays in it. */
export class Scope implements RequestScope {
  readonly method: string | undefined;
  readonly url: string | undefined;

  constructor(
    { method, url }: Pick<IncomingMessage, 'method' | 'url'>,
    public waiting: ServerResponse | undefined,
    /** When the request began, in monotonic ms. */
    readonly startedAt: number,
  ) {
    this.method = method;
    this.url = url;
  }

  /** The response was sent, or the client has disconnected. No one waits for work that goes on. */
  end(): void {
    this.waiting = undefined;
  }
}

/** HTTP methods whose requests have no body, or a body that no handler reads. */
const WITHOUT_BODY: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Whether each request runs in a context also if only the log needs it. Since Node 24 a context costs
 * 1 % of the CPU time of a light request. Before, it costs up to a sixth, because Node then follows
 * every promise.
 */
export const ARE_CONTEXTS_CHEAP = Number(process.versions.node.split('.')[0]) >= 24;

/**
 * Starts each request in its own asynchronous context. With one context for each connection, work
 * that a handler does after its response would count for the connection's next request.
 */
export class RequestScopes {
  /**
   * Created with the link, before the app. Since Node 24 the first AsyncLocalStorage swaps the
   * prototype of an internal class. If that happens late, V8 keeps the prototype as a dictionary, which
   * costs 8 % of the CPU time of a light request. While empty, the storage costs nothing.
   */
  readonly #storage = new AsyncLocalStorage<Scope>();
  #contexts: AsyncLocalStorage<Scope> | undefined;

  follow(on: boolean): void {
    if (!on) this.#storage.disable();
    this.#contexts = on ? this.#storage : undefined;
  }

  get current(): Scope | undefined {
    return this.#contexts?.getStore();
  }

  /** Called before the app handles a request. Runs for every request, so it must be cheap. */
  begin(request: IncomingMessage, response: ServerResponse, startedAt: number): Scope | undefined {
    const contexts = this.#contexts;
    if (contexts === undefined) return undefined;
    const scope = new Scope(request, response, startedAt);
    const enter = (): void => contexts.enterWith(scope);
    enter();
    if (!WITHOUT_BODY.has(request.method)) keepBodyIn(request, enter);
    return scope;
  }
}

/** Enters the request's context for each part of its body, because the parser of Node 24 does not. */
function keepBodyIn(request: IncomingMessage, enter: () => void): void {
  const push = request.push.bind(request);
  request.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    enter();
    return push(chunk, encoding);
  };
}

/** Maximum number of running requests in a report. */
const MAX_REQUESTS = 10;

const MAX_PATH_LENGTH = 200;

type RequestLine = Partial<Record<'method' | 'url' | 'originalUrl', string>>;

export interface RunningRequest {
  readonly request: RequestLine;
  readonly response: ServerResponse;
  /** When the request began, in monotonic ms. */
  readonly startedAt: number;
}

/** The path of a URL, without the scheme and authority of `GET http://host/path`. */
const PATH = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)/i;

/**
 * The requests that may end or block this process. If the current code runs in the asynchronous
 * context of a request, only this request, which may be answered already. Otherwise the requests in
 * flight, the newest first, without event streams, which are open in every worker.
 */
export function runningRequests({
  inFlight,
  scopes,
}: Pick<RequestTracker, 'inFlight' | 'scopes'>): BlockedRequest[] {
  const { current } = scopes;
  const running =
    current === undefined
      ? inFlight.filter(({ response }) => !isOpenEventStream(response)).toReversed()
      : [{ request: current, startedAt: current.startedAt }];
  const now = performance.now();
  return running
    .slice(0, MAX_REQUESTS)
    .map(({ request, startedAt }) => ({ ...describe(request), forMs: now - startedAt }));
}

/** The method and the path without the query, which may hold secrets. */
function describe({ method = '', url = '', originalUrl = url }: RequestLine) {
  // In `url`, Express cuts off the part that a router has matched. `originalUrl` has the whole URL.
  return { method, path: PATH.exec(originalUrl)![1]!.slice(0, MAX_PATH_LENGTH) };
}

/** The key of a set of watchers on an HTTP/1.1 socket or an HTTP/2 stream. One listener calls them all. */
const WATCHERS = Symbol('nestjs-cluster.watchers');

/**
 * Calls `gone` once if the client disconnects before its response is complete, or immediately if it
 * has disconnected already. With HTTP/1.1, watches the connection and not the response: if several
 * responses are pipelined, Node emits `close` only on the first.
 *
 * @returns a function that ends the watch.
 */
export function watchClient(response: ServerResponse, gone: () => void): () => void {
  if (response.writableFinished) return () => {};
  // Over HTTP/2 each response has its own stream. Once that is closed, `stream` is undefined.
  const watched = ('stream' in response ? response.stream : response.req.socket) as
    (Duplex & { [WATCHERS]?: Set<() => void> }) | undefined;
  if (watched === undefined || watched.destroyed) {
    gone();
    return () => {};
  }
  const watchers = (watched[WATCHERS] ??= watchersOn(watched));
  const leave = (): void => {
    if (!response.writableFinished) gone();
  };
  watchers.add(leave);
  return () => watchers.delete(leave);
}

function watchersOn(watched: Duplex): Set<() => void> {
  const watchers = new Set<() => void>();
  watched.once('close', () => {
    for (const leave of watchers) leave();
  });
  return watchers;
}
