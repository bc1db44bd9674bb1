import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
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

/** Other host names are refused: an attacker's name may resolve to loopback (DNS rebinding). */
const OUR_NAMES = /^(127\.0\.0\.1|localhost)(:\d+)?$/;

/** The files by URL path. A requested path is never used as a file name. */
const FILES: ReadonlyMap<string, readonly [name: string, type: string]> = new Map([
  ['/', ['index.html', 'text/html']],
  ['/main.js', ['main.js', 'text/javascript']],
  ['/dashboard.css', ['dashboard.css', 'text/css']],
  ['/icon.svg', ['icon.svg', 'image/svg+xml']],
]);

/** The headers of every answer: the page loads only its own files and cannot be framed. */
const HEADERS = {
  'Content-Security-Policy': "default-src 'self'; frame-ancestors 'none'",
  'Cache-Control': 'no-store',
};

class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Serves the page, and answers its requests about the cluster if they have the token. */
export class DashboardServer {
  readonly #token = randomBytes(32).toString('base64url');
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
   * @returns the URL of the page with the token. Browsers do not send the part after `#`.
   * @throws if the port is taken.
   */
  async listen(port: number): Promise<string> {
    this.#server.listen(port, HOST);
    await once(this.#server, 'listening');
    return `http://${HOST}:${(this.#server.address() as AddressInfo).port}/#token=${this.#token}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '/', headers } = request;
    if (!OUR_NAMES.test(headers.host ?? '')) throw new Refusal(421, 'unexpected Host header');
    const [path = '/', query] = url.split('?');
    const file = FILES.get(path);
    if (file !== undefined) {
      const body = await readFile(new URL(`./page/${file[0]}`, import.meta.url));
      response.writeHead(200, { ...HEADERS, 'Content-Type': `${file[1]}; charset=utf-8` });
      return void response.end(body);
    }
    if (!this.#admits(headers.authorization)) {
      response.setHeader('WWW-Authenticate', 'Bearer');
      throw new Refusal(401, 'Open the URL printed by the dashboard command.');
    }
    if (path === '/api/state') {
      const since = Number(new URLSearchParams(query).get('since'));
      return send(response, 200, this.feed.state(since));
    }
    const act = ACTIONS.get(path.replace('/api/', ''));
    if (act === undefined || method !== 'POST') throw new Refusal(404, 'not found');
    if (this.readOnly) throw new Refusal(403, 'the dashboard was started with --read-only');
    const body = (await json(request)) as Readonly<Record<string, unknown>>;
    send(response, 200, await act(this.feed.client, body));
  }

  /** Compares hashes, which takes the same time for every token. */
  #admits(authorization = ''): boolean {
    const hashOf = (text: string) => createHash('sha256').update(text).digest();
    return timingSafeEqual(hashOf(authorization), hashOf(`Bearer ${this.#token}`));
  }
}

function send(response: ServerResponse, status: number, answer: object): void {
  response.writeHead(status, { ...HEADERS, 'Content-Type': 'application/json; charset=utf-8' });
  response.end(JSON.stringify(answer));
}
