import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { oneLine, ToolError } from '../output.js';
import { ACTIONS } from './actions.js';
import type { ClusterFeed } from './cluster-feed.js';
import { Guard, Refusal, SECURITY_HEADERS } from './guard.js';

/** The server listens only on loopback. A user on another machine needs a tunnel with the same port. */
const HOST = '127.0.0.1';

/** Maximum time that a client may take to send a whole request, in ms. */
const REQUEST_MS = 5_000;
const MAX_CONNECTIONS = 64;
const MAX_BODY_BYTES = 4_096;

/** The files by URL path. A requested path is only looked up here, never used as a file name. */
const FILES: ReadonlyMap<string, readonly [name: string, type: string]> = new Map([
  ['/', ['index.html', 'text/html']],
  ['/main.js', ['main.js', 'text/javascript']],
  ['/dashboard.css', ['dashboard.css', 'text/css']],
  ['/icon.svg', ['icon.svg', 'image/svg+xml']],
]);

/** Serves the page to the browser that opens the link. */
export class DashboardServer {
  readonly #guard = new Guard();
  readonly #server = createServer(
    { headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS, connectionsCheckingInterval: 1_000 },
    (request, response) => {
      this.#answer(request, response).catch((error: unknown) => {
        const { status, code, message } = refusalOf(error);
        send(response, status, { error: { code, message: oneLine(message) } });
      });
    },
  );

  constructor(
    private readonly feed: ClusterFeed,
    private readonly readOnly: boolean,
  ) {
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  /**
   * @param port 0: any free port.
   * @returns the link that opens the page.
   * @throws if the port is taken.
   */
  async listen(port: number): Promise<string> {
    this.#server.listen(port, HOST);
    await once(this.#server, 'listening');
    this.#guard.port = (this.#server.address() as AddressInfo).port;
    return `http://${HOST}:${this.#guard.port}/#token=${this.#guard.token}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#guard.mustBeOurs(request);
    const { method, url = '/' } = request;
    const path = url.split('?')[0]!;
    const file = FILES.get(path);
    if (file !== undefined && method === 'GET') {
      const body = await readFile(new URL(`./page/${file[0]}`, import.meta.url));
      response.writeHead(200, { ...SECURITY_HEADERS, 'Content-Type': `${file[1]}; charset=utf-8` });
      return void response.end(body);
    }
    if (`${method} ${path}` === 'POST /api/session') {
      const { token } = await bodyOf(request);
      response.setHeader('Set-Cookie', this.#guard.open(token));
      return send(response, 200, { token });
    }
    this.#guard.mustView(request);
    if (path === '/api/session') return send(response, 200, { readOnly: this.readOnly });
    if (path === '/api/events') {
      response.writeHead(200, { ...SECURITY_HEADERS, 'Content-Type': 'text/event-stream' });
      return this.feed.show(response);
    }
    const act = ACTIONS.get(path.replace('/api/', ''));
    if (act === undefined || method !== 'POST') throw new Refusal(404, 'NOT_FOUND', 'not found');
    this.#guard.mustChange(request);
    if (this.readOnly) throw new Refusal(403, 'READ_ONLY', 'started with --read-only');
    const { client } = this.feed;
    if (client === undefined) throw new Refusal(503, 'NO_CLUSTER', 'there is no cluster yet');
    send(response, 200, await act(client, await bodyOf(request)));
  }
}

async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  if (!(Number(request.headers['content-length']) <= MAX_BODY_BYTES)) {
    throw new Refusal(413, 'TOO_LARGE', `a body has at most ${MAX_BODY_BYTES} bytes`);
  }
  const body = await json(request).catch(() => undefined);
  return Object(body) as Readonly<Record<string, unknown>>;
}

function send(response: ServerResponse, status: number, answer: object): void {
  const type = 'application/json; charset=utf-8';
  // After an error, the rest of the request's body could be parsed as the next request.
  const end = status >= 400 && { Connection: 'close' };
  response.writeHead(status, { ...SECURITY_HEADERS, 'Content-Type': type, ...end });
  response.end(JSON.stringify(answer));
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof ToolError) return new Refusal(409, 'REFUSED', error.message);
  return new Refusal(500, 'INTERNAL', `internal error: ${String(error)}`);
}
