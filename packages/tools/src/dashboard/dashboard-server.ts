import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { oneLine, ToolError } from '../output.js';
import { ACTIONS } from './actions.js';
import type { ClusterFeed } from './cluster-feed.js';

/** The server listens only on loopback. A user on another machine needs a tunnel. */
const HOST = '127.0.0.1';

/** Another name may be one of an attacker that resolves to loopback (DNS rebinding). */
const OUR_NAMES = /^(127\.0\.0\.1|localhost)(:\d+)?$/;

/** The files by URL path. A requested path is only looked up here, never used as a file name. */
const FILES: ReadonlyMap<string, readonly [name: string, type: string]> = new Map([
  ['/', ['index.html', 'text/html']],
  ['/main.js', ['main.js', 'text/javascript']],
  ['/dashboard.css', ['dashboard.css', 'text/css']],
  ['/icon.svg', ['icon.svg', 'image/svg+xml']],
]);

/** The headers of every answer: the page loads only its own files, and no other page frames it. */
const HEADERS = {
  'Content-Security-Policy': "default-src 'self'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
};

/** Why a request is refused. */
class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Serves the page. */
export class DashboardServer {
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error: Error) => {
      const status =
        error instanceof Refusal ? error.status : error instanceof ToolError ? 409 : 500;
      send(response, status, { error: { message: oneLine(error.message) } });
    });
  });

  constructor(
    private readonly feed: ClusterFeed,
    private readonly readOnly: boolean,
  ) {}

  /**
   * @param port 0: any free port.
   * @returns the URL of the page.
   * @throws if the port is taken.
   */
  async listen(port: number): Promise<string> {
    this.#server.listen(port, HOST);
    await once(this.#server, 'listening');
    return `http://${HOST}:${(this.#server.address() as AddressInfo).port}/`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '/', headers } = request;
    if (!OUR_NAMES.test(headers.host ?? '')) throw new Refusal(421, 'the Host header is not ours');
    const path = url.split('?')[0]!;
    const file = FILES.get(path);
    if (file !== undefined) {
      const body = await readFile(new URL(`./page/${file[0]}`, import.meta.url));
      response.writeHead(200, { ...HEADERS, 'Content-Type': `${file[1]}; charset=utf-8` });
      return void response.end(body);
    }
    if (path === '/api/events') {
      response.writeHead(200, { ...HEADERS, 'Content-Type': 'text/event-stream' });
      return this.feed.show(response);
    }
    const act = ACTIONS.get(path.replace('/api/', ''));
    if (act === undefined || method !== 'POST') throw new Refusal(404, 'not found');
    // A page of another site cannot send this type: the browser asks this server first, in vain.
    if (headers['content-type'] !== 'application/json') throw new Refusal(415, 'send JSON');
    if (this.readOnly) throw new Refusal(403, 'started with --read-only');
    const body = (await json(request)) as Readonly<Record<string, unknown>>;
    send(response, 200, await act(this.feed.client, body));
  }
}

function send(response: ServerResponse, status: number, answer: object): void {
  response.writeHead(status, { ...HEADERS, 'Content-Type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(answer));
}
