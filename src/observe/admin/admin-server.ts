import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { foreignClusterPage } from '../exposition/cluster-page.js';
import type { EndpointResponse } from '../endpoints/mount-endpoint.js';
import { shareInFlight } from '../endpoints/share-in-flight.js';
import { MetricsPage } from '../exposition/metrics-page.js';
import { SeriesLimit } from '../exposition/series-limit.js';
import { type AdminSource, PrimaryTimeout } from './admin-messages.js';
import { ALIVE, healthReport } from './admin-health.js';
import { unauthorized } from './authorization.js';
import { refusalOf } from './guard-request.js';

/** Maximum number of connections without a request in flight. A new connection takes the place of the oldest. */
const MAX_WAITING = 64;
/** Maximum number of connections. Further connections are closed at once. */
const MAX_CONNECTIONS = 128;
const REQUEST_TIMEOUT_MS = 5_000;
/** How often Node checks for requests over the timeout, in ms. Node's default is 30 s. */
const TIMEOUT_CHECK_MS = 1_000;
const KEEP_ALIVE_MS = 20_000;
/** A connection without traffic for this long, in ms, is closed: its client does not read the response. */
const STALLED_MS = 10_000;

const TEXT = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Serves the primary's data. No request changes anything, and request bodies are not read.
 *
 * @param tokenHash hash of the required token; with `undefined` no token is required.
 */
export function createAdminServer(
  host: string,
  source: AdminSource,
  tokenHash?: Uint8Array,
): Server {
  const limit = new SeriesLimit();
  const page = shareInFlight(async () => {
    const { families } = foreignClusterPage(await source.collectMetrics(), limit);
    return new MetricsPage(families);
  });
  const routes: Readonly<Record<string, (request: IncomingMessage) => Promise<EndpointResponse>>> =
    {
      '/health': async () => json(healthReport(await source.snapshot(), 'whole')),
      '/health/ready': async () => json(healthReport(await source.snapshot(), 'ready')),
      '/health/live': async () => {
        await source.snapshot();
        return json(ALIVE);
      },
      '/metrics': async (request) => (await page()).respond(request),
    };
  const answerTo = (request: IncomingMessage): Promise<EndpointResponse> | EndpointResponse => {
    const port = request.socket.localPort!;
    const refusal =
      refusalOf(request, host, port, tokenHash !== undefined) ?? unauthorized(request, tokenHash);
    if (refusal !== undefined) return plain(refusal.status, refusal.message, refusal.headers);
    const route = routes[pathOf(request)];
    if (route === undefined) {
      return plain(404, `not found; here are ${Object.keys(routes).join(', ')}`);
    }
    return route(request);
  };
  const server = createServer(
    {
      headersTimeout: REQUEST_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: TIMEOUT_CHECK_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (request, response) => {
      void (async () => answerTo(request))().then(
        (answer) => send(request, response, answer),
        (error: unknown) => send(request, response, failure(error)),
      );
    },
  );
  server.timeout = STALLED_MS;
  limitConnections(server);
  return server;
}

/** Clients that send no request, or half of one, must not keep probes out. */
function limitConnections(server: Server): void {
  server.maxConnections = MAX_CONNECTIONS;
  const waiting = new Set<Socket>(); // the oldest first
  const wait = (socket: Socket): void => {
    const [oldest] = waiting;
    if (waiting.size >= MAX_WAITING) oldest!.destroy();
    if (!socket.destroyed) waiting.add(socket);
  };
  server.on('connection', (socket: Socket) => {
    wait(socket);
    socket.once('close', () => waiting.delete(socket));
  });
  server.on('request', ({ socket }, response) => {
    waiting.delete(socket);
    response.once('finish', () => wait(socket));
  });
}

function send(request: IncomingMessage, response: ServerResponse, answer: EndpointResponse): void {
  const { status, contentType, body, headers = {} } = answer;
  response.writeHead(status, {
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    // Closes the connection, because the request's body is not read, and the rest of the body would
    // be parsed as the next request.
    ...(hasBody(request) && { Connection: 'close' }),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** The path of a request target in any form. A proxy sends the target with the host (RFC 9112, 3.2.2). */
function pathOf({ url = '' }: IncomingMessage): string {
  return URL.canParse(url, 'http://localhost') ? new URL(url, 'http://localhost').pathname : url;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The response to an error. The messages of other errors are not sent, as they may name files or hosts. */
function failure(error: unknown): EndpointResponse {
  return error instanceof PrimaryTimeout ? plain(503, error.message) : plain(500, 'internal error');
}

function plain(
  status: number,
  message: string,
  headers?: EndpointResponse['headers'],
): EndpointResponse {
  return { status, contentType: TEXT, body: `${message}\n`, headers };
}

function json({ status, report }: { status: number; report: object }): EndpointResponse {
  return { status, contentType: JSON_TYPE, body: JSON.stringify(report) };
}
