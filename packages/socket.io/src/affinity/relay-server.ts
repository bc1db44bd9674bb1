import { chmodSync } from 'node:fs';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RelayLimit } from '../../../../src/contract/snapshot/index.js';

/** Serves the sessions of this worker. */
export interface OwnSessions {
  request(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Answers a waiting request without loss, because the worker that relays it is about to exit. */
  release(request: IncomingMessage): void;
}

/** Asks a session's owner to release a request. Relays remove this header from client requests. */
export const RELEASE = 'x-nestjs-cluster-release';

/** Maximum size of the headers. Above Node's default of 16 KiB, because the relaying worker has checked them. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Listens for requests that other workers relay. The HTTP server does not listen itself, so a drain
 * neither closes nor counts it. The sessions end before that. Above the connection limit, new
 * requests get 503, but waiting requests are still released, because that frees connections.
 */
export async function listenForRelays(
  path: string,
  own: OwnSessions,
  limit?: RelayLimit,
): Promise<Server> {
  const http = createHttpServer({ maxHeaderSize: MAX_HEADER_BYTES, keepAliveTimeout: 0 });
  http.on('request', (request, response) => {
    if (request.headers[RELEASE] !== undefined) own.release(request);
    else if (limit?.admits() !== false) return own.request(request, response);
    else response.writeHead(503, { Connection: 'close' });
    response.end();
  });
  http.on('upgrade', (request, socket, head) => {
    if (limit?.admits() === false) socket.destroy();
    else own.upgrade(request, socket, head);
  });
  const server = createServer((socket) => {
    limit?.count(socket);
    http.emit('connection', socket);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  server.on('error', () => {}); // without free descriptors, the server accepts connections later
  chmodSync(path, 0o600);
  return server.unref();
}
