import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Fingerprint, QuarantineEntry } from '../../contract/ipc/index.js';
import type { RequestLine } from './describe-request.js';

type Emit = (name: string, ...args: unknown[]) => boolean;

/** Events by which a server gives a request to the app. */
const GIVES_REQUEST: ReadonlySet<string> = new Set(['request', 'checkContinue']);

/** Time that a request which was tried has to show that it does no harm. */
const SETTLED_MS = 2_000;

/** Seconds after which a client may ask again: by then another has been tried. */
const RETRY_AFTER = '60';

/**
 * Answers requests under quarantine with 503 in place of the app. While requests
 * are watched, it gives the app no request whose client has gone: after a
 * worker has ended, such requests wait in the accept queue for the next one.
 * At all other times the servers are as they were: a request pays nothing.
 */
export class RequestGuard {
  readonly #servers = new Set<Server>();
  #entries: readonly QuarantineEntry[] = [];
  #watch = false;
  /** Requests that have arrived and that the app has not been given. */
  readonly #held = new Set<RequestLine>();
  /** Trials of this worker that have begun. */
  readonly #tried = new Set<number>();

  constructor(
    private readonly fingerprint: (request: IncomingMessage) => Fingerprint | undefined,
    private readonly tell: (id: number, lived: boolean) => void,
    /** Called in the asynchronous context of a watched request that the app is about to be given. */
    private readonly give: () => void,
  ) {}

  get #stands(): boolean {
    return this.#watch || this.#entries.length > 0;
  }

  /** The app has not been given the request yet. */
  holds(request: RequestLine): boolean {
    return this.#held.has(request);
  }

  /** A second call for a server changes nothing. */
  follow(server: Server): void {
    if (this.#servers.has(server)) return;
    this.#servers.add(server);
    server.once('close', () => this.#servers.delete(server));
    if (this.#stands) this.#stand(server);
  }

  /** What is under quarantine from now on, and whether requests are watched. */
  set(entries: readonly QuarantineEntry[], watch: boolean): void {
    const stood = this.#stands;
    this.#entries = entries;
    this.#watch = watch;
    // One that is allowed no more may be allowed again.
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
   * Holds all requests of HTTP/1, not only the first of each connection: they keep their order, and
   * the one that blocks the event loop is the last that the app was given. A connection of HTTP/2
   * begins with an exchange of messages, so its client is there.
   */
  #hold(request: IncomingMessage, handOver: () => void): void {
    this.#held.add(request);
    // The request is read in one turn of the event loop, the end of its connection in the next.
    setImmediate(() =>
      setImmediate(() => {
        this.#held.delete(request);
        // Node ends a connection when its client does, unless the server has `httpAllowHalfOpen`.
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
