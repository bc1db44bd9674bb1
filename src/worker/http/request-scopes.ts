import type { IncomingMessage, ServerResponse } from 'node:http';
import type { EnterScope, RequestScope } from '../../contract/snapshot/index.js';
import type { Flight } from '../quarantine/flights.js';
import type { RequestWatch } from '../quarantine/request-watch.js';

/** The scope of one request. It lasts from the start of the request to the end of its response. */
export class Scope implements RequestScope {
  constructor(
    public waiting: ServerResponse | undefined,
    private readonly flight: Flight | undefined,
  ) {}

  /** The response was sent. Work that goes on in the scope no longer belongs to a request. */
  end(): void {
    this.waiting = undefined;
    this.flight?.end();
  }

  /** The client disconnected before its response was complete. */
  abandon(): void {
    this.waiting = undefined;
    this.flight?.abandon();
  }
}

/** HTTP methods whose requests have no body, or a body that no handler reads. */
const WITHOUT_BODY: ReadonlySet<string | undefined> = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Starts each request in its own asynchronous context. With one context for each connection, work
 * that a handler does after its response would count for the connection's next request.
 */
export class RequestScopes {
  enter: EnterScope | undefined;
  /** Set while requests are watched to find the request that ends or blocks its worker. */
  watch: Pick<RequestWatch, 'begin' | 'enter'> | undefined;

  /** Called before the app handles a request. Runs for every request, so it must be cheap. */
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

/** Enters the request's context for each part of its body, because the parser of Node 24 does not. */
function keepBodyIn(request: IncomingMessage, enter: () => void): void {
  const push = request.push.bind(request);
  request.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    enter();
    return push(chunk, encoding);
  };
}
