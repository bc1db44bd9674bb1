import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Fingerprint, QuarantineEntry } from '../../ipc/index.js';

type Emit = (name: string, ...args: unknown[]) => boolean;

/** Events by which a server gives a request to the app. */
const GIVES_REQUEST: ReadonlySet<string> = new Set(['request', 'checkContinue']);

/** Time that a request which was tried has to show that it does no harm. */
const SETTLED_MS = 2_000;

/** Seconds after which a client may ask again: by then another has been tried. */
const RETRY_AFTER = '60';

/**
 * Answers requests under quarantine with 503 in place of the app. As long as
 * there are none, the servers are as they were: a request pays nothing.
 */
export class RequestGuard {
  readonly #servers = new Set<Server>();
  #entries: readonly QuarantineEntry[] = [];
  /** Trials of this worker that have begun. */
  readonly #tried = new Set<number>();

  constructor(
    private readonly fingerprint: (request: IncomingMessage) => Fingerprint | undefined,
    private readonly tell: (id: number, lived: boolean) => void,
  ) {}

  /** A second call for a server changes nothing. */
  follow(server: Server): void {
    if (this.#servers.has(server)) return;
    this.#servers.add(server);
    server.once('close', () => this.#servers.delete(server));
    if (this.#entries.length > 0) this.#stand(server);
  }

  /** What is under quarantine from now on. */
  set(entries: readonly QuarantineEntry[]): void {
    const stood = this.#entries.length > 0;
    this.#entries = entries;
    // One that is allowed no more may be allowed again.
    for (const { id, trial } of entries) if (!trial) this.#tried.delete(id);
    if (stood === entries.length > 0) return;
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
      if (!this.#turnsAway(request, response)) return emit(name, ...args);
      request.resume();
      response.writeHead(503, { 'retry-after': RETRY_AFTER, 'content-type': 'application/json' });
      response.end(BODY);
      return true;
    };
    Object.defineProperty(server, 'emit', { value: guarded, configurable: true, writable: true });
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

const BODY = JSON.stringify({
  statusCode: 503,
  message: 'Requests like this one have ended workers of this server. Try again later.',
  error: 'Service Unavailable',
});
