import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline, type Readable } from 'node:stream';
import { readBody, Refusal } from '../../control/route.js';
import { clean, ClusterError, ClusterRefusedError } from '../../contract/errors/index.js';
import { Access } from './access.js';
import { ACTIONS } from './actions.js';
import type { ClusterFeed } from './cluster-feed.js';
import { guardBrowser, SECURITY_HEADERS } from './guard-browser.js';
import { pageFile } from './page-files.js';

/** The server listens only on loopback. A user on another machine needs a tunnel with the same port. */
const HOST = '127.0.0.1';

/** Maximum time that a client may take to send a whole request, in ms. */
const REQUEST_MS = 5_000;
const MAX_CONNECTIONS = 64;
const KEEP_ALIVE_MS = 2_000;

/** JSON, the stream of a page, or a file of the page. */
type PageAnswer =
  | { readonly status: number; readonly json: object }
  | { readonly status: number; readonly contentType: string; readonly stream: Readable }
  | { readonly status: number; readonly contentType: string; readonly body: Buffer };

interface Replied {
  readonly answer: PageAnswer;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Serves the page to the browser that opens the link. */
export class DashboardServer {
  readonly #access = new Access();
  readonly #server: Server;
  #port = 0;

  constructor(
    private readonly feed: ClusterFeed,
    private readonly readOnly: boolean,
  ) {
    this.#server = createServer(
      {
        headersTimeout: REQUEST_MS,
        requestTimeout: REQUEST_MS,
        connectionsCheckingInterval: 1_000,
      },
      (request, response) => void this.#onRequest(request, response),
    );
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
  }

  /** @param port 0: any free port. @throws if the port is taken. */
  async listen(port: number): Promise<void> {
    this.#server.listen(port, HOST);
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /**
   * Returns a link that opens the page once. The previous link becomes invalid. The token is in the
   * URL's fragment, which browsers never send.
   */
  newLink(): string {
    return `http://${HOST}:${this.#port}/#token=${this.#access.newLink()}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { answer, headers } = await this.#reply(request);
      send(response, answer, headers);
    } catch (error) {
      send(response, refusalOf(error));
    }
  }

  async #reply(request: IncomingMessage): Promise<Replied> {
    guardBrowser(request, this.#port);
    // `new URL()` would throw for a path such as //other:x.
    const path = (request.url ?? '/').split('?')[0]!;
    if (!path.startsWith('/api/')) return { answer: await page(request, path) };
    if (path === '/api/session' && request.method === 'POST') return this.#open(request);
    this.#access.mustView(request, this.#port);
    if (path === '/api/session') return { answer: ok({ readOnly: this.readOnly }) };
    if (path === '/api/events') return { answer: this.#events(request) };
    return { answer: await this.#act(request, path) };
  }

  async #open(request: IncomingMessage): Promise<Replied> {
    const body = (await readBody(request)) as { readonly token?: unknown } | undefined | null;
    const { cookie, header } = this.#access.exchange(body?.token, this.#port);
    return { answer: ok({ token: header }), headers: { 'Set-Cookie': cookie } };
  }

  #events({ method }: IncomingMessage): PageAnswer {
    if (method !== 'GET') throw notAllowed('GET');
    return {
      status: 200,
      contentType: 'text/event-stream; charset=utf-8',
      stream: this.feed.viewers.open(this.feed.introduction()),
    };
  }

  async #act(request: IncomingMessage, path: string): Promise<PageAnswer> {
    const act = ACTIONS.get(path.slice('/api/'.length));
    if (act === undefined) throw new Refusal(404, 'NOT_FOUND', 'not found');
    if (request.method !== 'POST') throw notAllowed('POST');
    this.#access.mustChange(request);
    if (this.readOnly) {
      throw new Refusal(403, 'READ_ONLY', 'the dashboard was started with --read-only');
    }
    const body = ((await readBody(request)) ?? {}) as Record<string, unknown>;
    const { client } = this.feed;
    if (client === undefined) throw new Refusal(503, 'NO_CLUSTER', 'there is no cluster yet');
    return ok(await act(client, Object(body) as typeof body));
  }
}

function ok(json: object): PageAnswer {
  return { status: 200, json };
}

async function page({ method }: IncomingMessage, path: string): Promise<PageAnswer> {
  const file = await pageFile(path);
  if (file === undefined) throw new Refusal(404, 'NOT_FOUND', 'not found');
  if (method !== 'GET' && method !== 'HEAD') throw notAllowed('GET');
  return { status: 200, contentType: file.type, body: file.body };
}

function send(
  response: ServerResponse,
  answer: PageAnswer,
  headers: Readonly<Record<string, string>> = {},
): void {
  if ('stream' in answer) {
    // The client has already disconnected, so nothing else would end the stream.
    if (response.destroyed) return void answer.stream.destroy();
    response.writeHead(answer.status, { ...SECURITY_HEADERS, 'Content-Type': answer.contentType });
    response.flushHeaders();
    return void pipeline(answer.stream, response, () => response.destroy());
  }
  const body = 'json' in answer ? Buffer.from(JSON.stringify(answer.json)) : answer.body;
  response.writeHead(answer.status, {
    ...SECURITY_HEADERS,
    ...headers,
    'Content-Type': 'json' in answer ? 'application/json; charset=utf-8' : answer.contentType,
    'Content-Length': body.length,
    // After an error the request's body may be unread. On a keep-alive connection the rest of the
    // body could be parsed as the next request.
    ...(answer.status >= 400 && { Connection: 'close' }),
  });
  response.end(body);
}

function refusalOf(error: unknown): PageAnswer {
  if (error instanceof Refusal) return refused(error.status, error.code, error.message);
  if (error instanceof ClusterRefusedError) return refused(409, error.code, error.message);
  if (error instanceof ClusterError) return refused(502, error.code, error.message);
  return refused(500, 'INTERNAL', `internal error: ${String(error)}`);
}

function refused(status: number, code: string, message: string): PageAnswer {
  return { status, json: { error: { code, message: clean(message) } } };
}

function notAllowed(method: string): Refusal {
  return new Refusal(405, 'METHOD_NOT_ALLOWED', `this path takes ${method} only`);
}
