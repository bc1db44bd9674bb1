import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Fingerprint, QuarantineEntry } from '../../contract/ipc/index.js';
import type { RequestLine } from './describe-request.js';

type Emit = (name: string, ...args: unknown[]) => boolean;

/** The events by which a server hands a request to the app. */
const GIVES_REQUEST: ReadonlySet<string> = new Set(['request', 'checkContinue']);

/** A trial request has succeeded if the worker is alive this long after the response. */
const SETTLED_MS = 2_000;

/** The number of seconds after which a client may retry. By then another trial has been made. */
const RETRY_AFTER = '60';

/**
 * Answers requests under quarantine with 503 in place of the app. While requests are watched, drops
 * requests whose clients have disconnected: after a worker has ended, such requests wait in the
 * accept queue for the next worker. At all other times the servers are not changed or slowed down.
 */
export class RequestGuard {
  readonly #servers = new Set<Server>();
  #entries: readonly QuarantineEntry[] = [];
  #watch = false;
  /** Requests that have arrived and were not handed to the app. */
  readonly #held = new Set<RequestLine>();
  /** The ids of the quarantine entries for which this worker has begun a trial. */
  readonly #tried = new Set<number>();

  constructor(
    private readonly fingerprint: (request: IncomingMessage) => Fingerprint | undefined,
    private readonly tell: (id: number, lived: boolean) => void,
    /** Called before the app gets a watched request, in the request's asynchronous context. */
    private readonly give: () => void,
  ) {}

  get #stands(): boolean {
    return this.#watch || this.#entries.length > 0;
  }

  /** Whether the request was not handed to the app yet. */
  holds(request: RequestLine): boolean {
    return this.#held.has(request);
  }

  /** Guards `server` if needed. A second call for the server changes nothing. */
  follow(server: Server): void {
    if (this.#servers.has(server)) return;
    this.#servers.add(server);
    server.once('close', () => this.#servers.delete(server));
    if (this.#stands) this.#stand(server);
  }

  /** Sets which requests are under quarantine from now on, and whether requests are watched. */
  set(entries: readonly QuarantineEntry[], watch: boolean): void {
    const stood = this.#stands;
    this.#entries = entries;
    this.#watch = watch;
    // Forgets a trial that this worker may no longer make, because the primary may allow another later.
    for (const { id, trial } of entries) if (!trial) this.#tried.delete(id);
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
      const handOver = (): unknown =>
        this.#turnsAway(request, response) ? refuse(request, response) : emit(name, ...args);
      if (this.#watch && request.httpVersionMajor < 2) this.#hold(request, handOver);
      else handOver();
      return true;
    };
    Object.defineProperty(server, 'emit', { value: guarded, configurable: true, writable: true });
  }

  /**
   * Holds a request until it is clear whether its client is still connected. Holds every HTTP/1.1
   * request, not only the first of a connection, to keep their order: the request that blocks the
   * event loop must be the last that the app got. An HTTP/2 client is known to be connected.
   */
  #hold(request: IncomingMessage, handOver: () => void): void {
    this.#held.add(request);
    // Waits two turns: Node reads the request in one turn, and the connection's end in the next.
    setImmediate(() =>
      setImmediate(() => {
        this.#held.delete(request);
        // If the client has ended the connection, Node has ended it too, so the socket is not
        // writable. With `httpAllowHalfOpen`, Node does not, and the request reaches the app.
        if (!request.socket.writable) return void request.socket.destroy();
        this.give();
        handOver();
      }),
    );
  }

  #turnsAway(request: IncomingMessage, response: ServerResponse): boolean {
    const own = this.fingerprint(request);
    if (own === undefined) return false;
    const entry = this.#entries.find(
      ({ method, route, url }) =>
        method === own.method && route === own.route && (url ?? own.url) === own.url,
    );
    if (entry === undefined) return false;
    const { id, trial } = entry;
    if (!trial || this.#tried.has(id)) return true;
    this.#tried.add(id);
    this.tell(id, false);
    response.once('close', () => {
      setTimeout(() => this.tell(id, true), SETTLED_MS).unref();
    });
    return false;
  }
}

function refuse(request: IncomingMessage, response: ServerResponse): void {
  request.resume();
  response.writeHead(503, { 'retry-after': RETRY_AFTER, 'content-type': 'application/json' });
  response.end(BODY);
}

const BODY = JSON.stringify({
  statusCode: 503,
  message: 'Requests like this one have ended workers of this server. Try again later.',
  error: 'Service Unavailable',
});
