import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import http, { type Server } from 'node:http';
import https from 'node:https';

/** The diagnostics channel for each server that begins to listen, since Node 20.16 and 22.3. */
const LISTENING = 'tracing:net.server.listen:asyncEnd';

/**
 * All HTTP servers of this process that listen: the app's own server, and servers that the app
 * made in addition, such as a server that only redirects or a WebSocket gateway with its own port.
 */
export class HttpServers {
  readonly #servers = new Set<Server>();
  #own: Server | undefined;

  /**
   * @param found is called once for each server, before the server's first connection.
   * @param listens is called each time a server begins to listen, before it accepts a connection.
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

  /** The servers that the app made in addition to its own server. The app may close them itself. */
  get further(): readonly Server[] {
    return this.all.filter((server) => server !== this.#own);
  }

  /** Adds the app's own server, which may not listen yet. */
  add(server: Server): void {
    this.#own = server;
    this.#add(server);
  }

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
  // Recognizes an HTTP/2 server by a method: node:http2 exports no server classes, and importing
  // the module would load it into every worker.
  return typeof (server as { updateSettings?: unknown }).updateSettings === 'function';
}
