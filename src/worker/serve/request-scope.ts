import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { BlockedRequest } from '../../contract/messages.js';
import type { RequestScope } from '../../contract/snapshot/types.js';
import { isOpenEventStream } from './connection.js';
import type { RequestTracker } from './tracker.js';

/** The scope of one request. Code that runs after the response stays in it. */
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

  /** Called when the response is sent or the client disconnects. */
  end(): void {
    this.waiting = undefined;
  }
}

/** Requests with these methods have no body, or no handler reads it. */
const WITHOUT_BODY: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Whether each request gets an async context even if only the log uses it. Since Node 24, a context
 * costs 1 % of the CPU time of a light request. Older versions track every promise, which costs up
 * to a sixth.
 */
export const ARE_CONTEXTS_CHEAP = Number(process.versions.node.split('.')[0]) >= 24;

/**
 * Gives each request its own async context. With one per connection, work after a response would be
 * attributed to the connection's next request.
 */
export class RequestScopes {
  /**
   * Must be created before the app. Since Node 24, the first AsyncLocalStorage replaces the prototype
   * of an internal class. If this happens late, V8 makes the prototype a dictionary, which costs 8 % of
   * the CPU time of a light request. An unused storage costs nothing.
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

  /** Called for every request before the app handles it. Must be cheap. */
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

/** Enters the context again for each part of the body, because Node 24's parser does not. */
function keepBodyIn(request: IncomingMessage, enter: () => void): void {
  const push = request.push.bind(request);
  request.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    enter();
    return push(chunk, encoding);
  };
}

/** Maximum number of requests in a report. */
const MAX_REQUESTS = 10;

const MAX_PATH_LENGTH = 200;

type RequestLine = Partial<Record<'method' | 'url' | 'originalUrl', string>>;

export interface RunningRequest {
  readonly request: RequestLine;
  readonly response: ServerResponse;
  /** When the request began, in monotonic ms. */
  readonly startedAt: number;
}

/** Captures the path, also in the absolute form `GET http://host/path`. */
const PATH = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)/i;

/**
 * The requests that may have caused an exit or a block. If the current code runs in a request's
 * context, returns only this request, even if it has been answered. Otherwise returns the requests in
 * flight, the newest first. Leaves out event streams, because every worker has them.
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

/** Omits the query, because it may contain secrets. */
function describe({ method = '', url = '', originalUrl = url }: RequestLine) {
  // Express removes the prefix of a mounted router from `url`. `originalUrl` is the whole URL.
  return { method, path: PATH.exec(originalUrl)![1]!.slice(0, MAX_PATH_LENGTH) };
}

/** The key of the watchers on an HTTP/1.1 socket or HTTP/2 stream. They share one 'close' listener. */
const WATCHERS = Symbol('nestjs-cluster.watchers');

/**
 * Calls `gone` once if the client disconnects before the response is complete, or immediately if it
 * already has. Over HTTP/1.1, watches the connection instead of the response: with pipelining, Node
 * emits 'close' only on the first response.
 *
 * @returns a function that stops watching.
 */
export function watchClient(response: ServerResponse, gone: () => void): () => void {
  if (response.writableFinished) return () => {};
  // Over HTTP/2, each response has a stream, which is undefined after it has closed.
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
