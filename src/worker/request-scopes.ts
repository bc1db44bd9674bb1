import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EnterScope, RequestScope } from '../snapshot/index.js';

/** One request's scope, from its first line to its answer. */
export class Scope implements RequestScope {
  constructor(public waiting: ServerResponse | undefined) {}

  /** The request is answered, or its client is gone: work that goes on in the scope is nobody's. */
  end(): void {
    this.waiting = undefined;
  }
}

/** Methods whose requests bring no body, or none that anybody reads. */
const WITHOUT_BODY: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Has the work for each request begin in an asynchronous context of its own. One a connection would
 * not do: a handler that has answered, and goes on, would be taken for that of the next request.
 */
export class RequestScopes {
  enter: EnterScope | undefined;

  /** A request has begun, and nothing has been done for it. On the request path. */
  begin(request: IncomingMessage, response: ServerResponse): Scope | undefined {
    const { enter } = this;
    if (enter === undefined) return undefined;
    const scope = new Scope(response);
    enter(scope);
    if (!WITHOUT_BODY.has(request.method)) keepBodyIn(scope, request, enter);
    return scope;
  }
}

/** The parser hands over a body in the context in which it was made itself: since Node 24 that is no request's. */
function keepBodyIn(scope: Scope, request: IncomingMessage, enter: EnterScope): void {
  const push = request.push.bind(request);
  request.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    enter(scope);
    return push(chunk, encoding);
  };
}
