import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import http, { type Server } from 'node:http';
import https from 'node:https';

/** The diagnostics channel of Node 20.16 and 22.3. */
const LISTENING = 'tracing:net.server.listen:asyncEnd';

/**
 * All HTTP servers of this process that listen: the app's own, one that only
 * redirects, the one of a WebSocket gateway with its own port.
 */
export class HttpServers {
  readonly #servers = new Set<Server>();
  #own: Server | undefined;

  /**
   * @param found is told of each before its first connection.
   * @param listens is told of each as soon as it listens, before its first connection too.
   */
  constructor(
    private readonly found: (server: Server) => void,
    private readonly listens: (server: Server) => void,
  ) {
    subscribe(LISTENING, this.#onListening);
  }

  get all(): readonly Server[] {
    return [...this.#servers];
  }

  /** Servers that the app made in addition to its own, and may close by itself. */
  get further(): readonly Server[] {
    return this.all.filter((server) => server !== this.#own);
  }

  /** The app's own, which may not listen yet. */
  add(server: Server): void {
    this.#own = server;
    this.#add(server);
  }

  /** Looks for no more. */
  stop(): void {
    unsubscribe(LISTENING, this.#onListening);
  }

  #add(server: Server): void {
    if (this.#servers.has(server)) return;
    this.#servers.add(server);
    server.once('close', () => this.#servers.delete(server));
    this.found(server);
  }

  readonly #onListening = (message: unknown): void => {
    const { server } = message as { readonly server: unknown };
    if (!isHttpServer(server)) return;
    this.#add(server);
    this.listens(server);
  };
}

function isHttpServer(server: unknown): server is Server {
  if (server instanceof http.Server || server instanceof https.Server) return true;
  // node:http2 exports no class of its servers, and to import it would load it into every worker.
  return typeof (server as { updateSettings?: unknown }).updateSettings === 'function';
}
