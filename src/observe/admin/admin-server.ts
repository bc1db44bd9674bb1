import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { foreignClusterPage } from '../exposition/cluster-page.js';
import type { EndpointResponse } from '../endpoints/mount-endpoint.js';
import { shareInFlight } from '../endpoints/share-in-flight.js';
import { MetricsPage } from '../exposition/metrics-page.js';
import { type AdminSource, PrimaryTimeout } from './admin-messages.js';
import { ALIVE, healthReport } from './admin-health.js';
import { unauthorized } from './authorization.js';
import { refusalOf } from './guard-request.js';

/** The limit of connections, which serve probes and scrapes; further ones are turned away. */
const MAX_CONNECTIONS = 64;
const REQUEST_TIMEOUT_MS = 5_000;
/** How often Node checks for requests over the timeout; its default is 30 s. */
const TIMEOUT_CHECK_MS = 1_000;
const KEEP_ALIVE_MS = 20_000;
/** A connection without any traffic for this long is closed: its client does not read the answer. */
const STALLED_MS = 10_000;

const TEXT = 'text/plain; charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Serves the primary's data. It changes nothing and reads no request body.
 *
 * @param tokenHash hash of the required token; with `undefined` everybody who reaches the listener
 * gets an answer.
 */
export function createAdminServer(
  host: string,
  source: AdminSource,
  tokenHash?: Uint8Array,
): Server {
  /** The number of samples left out because the workers had too many series together, by metric. */
  const dropped = new Map<string, number>();
  const page = shareInFlight(async () => {
    const { families } = foreignClusterPage(await source.collectMetrics(), dropped);
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
    const { port } = server.address() as AddressInfo;
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
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = STALLED_MS;
  // A client that was turned away finds room the next time, unless all connections are in use.
  server.on('drop', () => server.closeIdleConnections());
  return server;
}

function send(request: IncomingMessage, response: ServerResponse, answer: EndpointResponse): void {
  const { status, contentType, body, headers = {} } = answer;
  response.writeHead(status, {
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    // Nobody reads a body that came with the request: the next request would begin in it.
    ...(hasBody(request) && { Connection: 'close' }),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** The path of a request target in any form: a proxy sends the target with the host (RFC 9112, 3.2.2). */
function pathOf({ url = '' }: IncomingMessage): string {
  return URL.canParse(url, 'http://localhost') ? new URL(url, 'http://localhost').pathname : url;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The words of any other error may name something of the machine. */
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
