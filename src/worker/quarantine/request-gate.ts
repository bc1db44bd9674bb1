import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { AppRoutes } from './app-routes.js';
import type { RequestLine } from './describe-request.js';

type Emit = (name: string, ...args: unknown[]) => boolean;

/** A step before the app gets a request: answers the request, or calls `handOver` now or later. */
export type GateStep = (
  request: IncomingMessage,
  response: ServerResponse,
  handOver: () => void,
) => void;

/** The events by which a server hands a request to the app. */
const GIVES_REQUEST: ReadonlySet<string> = new Set(['request', 'checkContinue']);

const pass: GateStep = (_request, _response, handOver) => handOver();

/**
 * Hands requests to the app, through the limit and the quarantine. While there is neither, the
 * servers are not changed or slowed down.
 */
export class RequestGate {
  readonly routes = new AppRoutes();
  readonly #servers = new Set<Server>();
  /** Requests that have arrived and were not handed to the app. */
  readonly held = new Set<RequestLine>();
  #limit: { readonly server: Server; readonly step: GateStep } | undefined;
  #quarantine: GateStep | undefined;

  /** Follows `server`. A second call for the server changes nothing. */
  follow(server: Server): void {
    if (this.#servers.has(server)) return;
    this.#servers.add(server);
    server.once('close', () => this.#servers.delete(server));
    if (this.#stands) this.#stand(server);
  }

  /** Sends the requests of the app's own server through `step` first. */
  limit(server: Server, step: GateStep): void {
    this.#change(() => (this.#limit = { server, step }));
  }

  /** The step for the requests of all servers; `undefined` = none. */
  set quarantine(step: GateStep | undefined) {
    this.#change(() => (this.#quarantine = step));
  }

  get #stands(): boolean {
    return (this.#limit ?? this.#quarantine) !== undefined;
  }

  #change(change: () => void): void {
    const stood = this.#stands;
    change();
    if (stood === this.#stands) return;
    for (const server of this.#servers) {
      if (stood) Reflect.deleteProperty(server, 'emit');
      else this.#stand(server);
    }
  }

  #stand(server: Server): void {
    const emit = server.emit.bind(server) as Emit;
    const guarded: Emit = (name, ...args) => {
      if (!GIVES_REQUEST.has(name)) return emit(name, ...args);
      const [request, response] = args as [IncomingMessage, ServerResponse];
      const limit = this.#limit?.server === server ? this.#limit.step : pass;
      const quarantine = this.#quarantine ?? pass;
      limit(request, response, () => quarantine(request, response, () => void emit(name, ...args)));
      return true;
    };
    Object.defineProperty(server, 'emit', { value: guarded, configurable: true, writable: true });
  }
}

/** Answers a request with 503 in place of the app. */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  { message, retryAfterSeconds }: { readonly message: string; readonly retryAfterSeconds: number },
): void {
  request.resume();
  response.writeHead(503, {
    'retry-after': String(retryAfterSeconds),
    'content-type': 'application/json',
  });
  response.end(JSON.stringify({ statusCode: 503, message, error: 'Service Unavailable' }));
}
