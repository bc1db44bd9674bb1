import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestScope } from '../../contract/snapshot/index.js';

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

  /** The response was sent, or the client has disconnected. Nobody waits for work that goes on. */
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
  #contexts: AsyncLocalStorage<Scope> | undefined;

  follow(on: boolean): void {
    if (!on) this.#contexts?.disable();
    this.#contexts = on ? (this.#contexts ?? new AsyncLocalStorage()) : undefined;
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
