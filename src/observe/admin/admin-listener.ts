import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import {
  ClusterAddressError,
  ClusterConfigurationError,
  OnceAMinute,
} from '../../contract/errors/errors.js';
import type { ResolvedAdminOptions } from '../../contract/options/resolve.js';
import { loadPrometheusClients } from '../../contract/options/peers.js';
import { whenFree } from '../../contract/process/in-time.js';
import type { ClusterSnapshot, CollectedMetrics } from '../../contract/snapshot/types.js';
import {
  type EndpointResponse,
  JSON_TYPE,
  shareInFlight,
  TEXT_TYPE,
} from '../endpoints/mount-endpoint.js';
import { clusterRegistry, MetricsPage } from '../exposition/metrics-page.js';
import { ALIVE, healthReport } from '../exposition/cluster-report.js';

/** Further connections are closed. */
const MAX_CONNECTIONS = 64;
/** Within this time, in ms, a request must be complete; a connection without traffic is closed after twice as long. */
const REQUEST_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 20_000;

interface AdminSource {
  snapshot(): ClusterSnapshot;
  collectMetrics(): Promise<CollectedMetrics>;
}

/**
 * The primary's own listener, without the app: `/health` and `/metrics`. No request changes anything.
 *
 * @param warn logs a request that cannot be answered.
 * @returns its URL.
 * @throws ClusterAddressError
 */
export function openAdminListener(
  options: ResolvedAdminOptions,
  source: AdminSource,
  warn: (message: string) => void,
): Promise<string> {
  return whenFree(() => listen(options, source, warn));
}

async function listen(
  options: ResolvedAdminOptions,
  source: AdminSource,
  warn: (message: string) => void,
): Promise<string> {
  const { host, port } = options;
  const answerTo = answers(options, source);
  const failures = new OnceAMinute(warn);
  const server = createServer(
    {
      headersTimeout: REQUEST_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      connectionsCheckingInterval: 1_000,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (request, response) => {
      answerTo(request).then(
        (answer) => send(request, response, answer),
        (error: unknown) => {
          failures.say(
            `the admin listener cannot answer ${request.url}: ${String(error)}`,
            'failure',
          );
          send(request, response, failure(error));
        },
      );
    },
  );
  server.timeout = 2 * REQUEST_TIMEOUT_MS;
  server.maxConnections = MAX_CONNECTIONS;
  server.listen({ host, port });
  const bracketed = (address: string) => (address.includes(':') ? `[${address}]` : address);
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new ClusterAddressError(`${bracketed(host)}:${port}`, error as NodeJS.ErrnoException);
  }
  server.unref(); // the workers keep the primary alive
  const { address, port: actual } = server.address() as AddressInfo;
  return `http://${bracketed(address)}:${actual}`;
}

function answers(
  { token }: ResolvedAdminOptions,
  source: AdminSource,
): (request: IncomingMessage) => Promise<EndpointResponse> {
  // Loaded now, because the files of the release may be removed before the first scrape.
  const clients = loadPrometheusClients();
  clients.catch(() => {}); // `/metrics` reports it
  const page = shareInFlight(async () => {
    const [client] = await clients;
    const { registry } = clusterRegistry(client!, await source.collectMetrics());
    return new MetricsPage(registry.contentType, await registry.metrics());
  });
  const routes: Readonly<
    Record<string, (request: IncomingMessage) => EndpointResponse | Promise<EndpointResponse>>
  > = {
    '/health': () => json(healthReport(source.snapshot(), 'whole')),
    '/health/ready': () => json(healthReport(source.snapshot(), 'ready')),
    '/health/live': () => json(ALIVE),
    '/metrics': async (request) => (await page()).respond(request),
  };
  return async (request) => {
    const refusal = token === undefined ? foreign(request) : unauthorized(request, token);
    if (refusal !== undefined) return refusal;
    if (!['GET', 'HEAD'].includes(request.method!)) return plain(405, 'only GET and HEAD');
    const { url = '' } = request;
    // A proxy sends the target with the host (RFC 9112, 3.2.2).
    const path = URL.canParse(url, 'http://localhost')
      ? new URL(url, 'http://localhost').pathname
      : '';
    const route = routes[path];
    return route?.(request) ?? plain(404, `not found; here are ${Object.keys(routes).join(', ')}`);
  };
}

/**
 * Refuses a request that a malicious web page could have sent from a browser on this machine: by a
 * host name that the attacker resolves to this address (DNS rebinding), or from another site.
 */
function foreign({ headers }: IncomingMessage): EndpointResponse | undefined {
  const { host = '', origin } = headers;
  const name = host.replace(/:\d+$/, '').replace(/^\[(.+)\]$/, '$1');
  // A public domain has a dot; the name of a service in the same namespace has none.
  if (isIP(name) === 0 && !/^[a-z\d-]+$/i.test(name)) {
    return plain(421, 'misdirected request: the Host header names another server');
  }
  if (
    headers['sec-fetch-site'] === 'cross-site' ||
    (origin ?? `http://${host}`) !== `http://${host}`
  ) {
    return plain(403, 'forbidden: the request comes from another site');
  }
  return undefined;
}

/** Compares hashes, which takes the same time for every token. */
function unauthorized({ headers }: IncomingMessage, token: string): EndpointResponse | undefined {
  const hashOf = (text: string) => createHash('sha256').update(text).digest();
  const [, given = ''] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (timingSafeEqual(hashOf(given), hashOf(token))) return undefined;
  const headersOfAnswer = { 'WWW-Authenticate': 'Bearer realm="nestjs-cluster"' };
  const message = 'unauthorized: send the token as Authorization: Bearer …';
  return { ...plain(401, message), headers: headersOfAnswer };
}

function send(request: IncomingMessage, response: ServerResponse, answer: EndpointResponse): void {
  const { status, contentType, body, headers = {} } = answer;
  const hasBody =
    request.headers['transfer-encoding'] !== undefined ||
    Number(request.headers['content-length'] ?? 0) > 0;
  response.writeHead(status, {
    'Content-Type': contentType,
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    // The body of a request is not read, so the connection cannot be used again.
    ...(hasBody && { Connection: 'close' }),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Says what to install if there is no Prometheus client. Other errors may name files or hosts. */
function failure(error: unknown): EndpointResponse {
  return plain(500, error instanceof ClusterConfigurationError ? error.message : 'internal error');
}

function plain(status: number, message: string): EndpointResponse {
  return { status, contentType: TEXT_TYPE, body: `${message}\n` };
}

function json({ status, report }: { status: number; report: object }): EndpointResponse {
  return { status, contentType: JSON_TYPE, body: JSON.stringify(report) };
}
