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
/** Timeout for receiving a request. Silent connections are closed after twice this time. */
const REQUEST_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 20_000;

interface AdminSource {
  snapshot(): ClusterSnapshot;
  collectMetrics(): Promise<CollectedMetrics>;
}

/**
 * Serves `/health` and `/metrics` in the primary, without the app. All endpoints are read-only.
 *
 * @param warn called if a request cannot be answered.
 * @returns the URL of the listener.
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
  // Loaded at startup, because the release's files may be removed before the first scrape.
  const clients = loadPrometheusClients();
  clients.catch(() => {}); // `/metrics` reports the error
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
    if (!['GET', 'HEAD'].includes(request.method!)) return plain(405, 'use GET or HEAD');
    const { url = '' } = request;
    // A client that treats the listener as a proxy sends an absolute URL (RFC 9112, 3.2.2).
    const path = URL.canParse(url, 'http://localhost')
      ? new URL(url, 'http://localhost').pathname
      : '';
    const route = routes[path];
    return route?.(request) ?? plain(404, `not found; use ${Object.keys(routes).join(', ')}`);
  };
}

/**
 * Rejects requests that a malicious web page could send from a browser on this machine: requests with
 * a host name that an attacker controls (DNS rebinding), and cross-site requests.
 */
function foreign({ headers }: IncomingMessage): EndpointResponse | undefined {
  const { host = '', origin } = headers;
  const name = host.replace(/:\d+$/, '').replace(/^\[(.+)\]$/, '$1');
  // Public domains contain a dot. The name of a service in the same Kubernetes namespace does not.
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

/** Compares hashes in constant time, so that the duration reveals nothing about the token. */
function unauthorized({ headers }: IncomingMessage, token: string): EndpointResponse | undefined {
  const hashOf = (text: string) => createHash('sha256').update(text).digest();
  const [, given = ''] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (timingSafeEqual(hashOf(given), hashOf(token))) return undefined;
  const headersOfAnswer = { 'WWW-Authenticate': 'Bearer realm="nestjs-cluster"' };
  const message = 'unauthorized: send the header Authorization: Bearer <token>';
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
    // Request bodies are not read, so the connection cannot be reused.
    ...(hasBody && { Connection: 'close' }),
    ...headers,
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** Hides messages of unexpected errors, because they may name files or hosts. */
function failure(error: unknown): EndpointResponse {
  return plain(500, error instanceof ClusterConfigurationError ? error.message : 'internal error');
}

function plain(status: number, message: string): EndpointResponse {
  return { status, contentType: TEXT_TYPE, body: `${message}\n` };
}

function json({ status, report }: { status: number; report: object }): EndpointResponse {
  return { status, contentType: JSON_TYPE, body: JSON.stringify(report) };
}
