import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EnterScope, RequestScope } from '../../contract/snapshot/index.js';
import type { Flight } from '../quarantine/flights.js';
import type { RequestWatch } from '../quarantine/request-watch.js';

/** One request's scope, from its first line to its answer. */
export class Scope implements RequestScope {
  constructor(
    public waiting: ServerResponse | undefined,
    private readonly flight: Flight | undefined,
  ) {}

  /** The request is answered: work that goes on in the scope is nobody's. */
  end(): void {
    this.waiting = undefined;
    this.flight?.end();
  }

  /** The client is gone before its answer. */
  abandon(): void {
    this.waiting = undefined;
    this.flight?.abandon();
  }
}

/** Methods whose requests bring no body, or none that anybody reads. */
const WITHOUT_BODY: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Begins the work for each request in an asynchronous context of its own. One context for each
 * connection is not enough: a handler that goes on after its answer would count as the next request's.
 */
export class RequestScopes {
  enter: EnterScope | undefined;
  /** Set while requests are watched closely. */
  watch: Pick<RequestWatch, 'begin' | 'enter'> | undefined;

  /** A request has begun, and nothing has been done for it. On the request path. */
  begin(request: IncomingMessage, response: ServerResponse): Scope | undefined {
    const { enter, watch } = this;
    if (enter === undefined && watch === undefined) return undefined;
    const flight = watch?.begin(request, response);
    const scope = new Scope(response, flight);
    const enterAll = (): void => {
      enter?.(scope);
      if (flight !== undefined) watch!.enter(flight);
    };
    enterAll();
    if (!WITHOUT_BODY.has(request.method)) keepBodyIn(request, enterAll);
    return scope;
  }
}

/** The parser hands over a body in the context of its own creation. Since Node 24 that is not a request's. */
function keepBodyIn(request: IncomingMessage, enter: () => void): void {
  const push = request.push.bind(request);
  request.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    enter();
    return push(chunk, encoding);
  };
}
