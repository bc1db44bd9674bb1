import { chmodSync } from 'node:fs';
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer, type Server } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RelayLimit } from '../../contract/snapshot/index.js';

/** Serves the sessions of this worker. */
export interface OwnSessions {
  request(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Answers a waiting request of a session, without loss, because the worker that relays it leaves. */
  release(request: IncomingMessage): void;
}

/** A header that asks the owner to release a waiting request. Relays remove it from requests of clients. */
export const RELEASE = 'x-nestjs-cluster-release';

/** Larger than in other servers: the relaying worker has already checked the headers. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Listens for requests that other workers relay. The HTTP server itself does not listen, so the drain
 * neither closes nor counts it: its sessions end earlier. Above the limit it still releases waiting
 * requests, since that frees connections.
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
  server.on('error', () => {}); // without free descriptors it accepts later
  chmodSync(path, 0o600);
  return server.unref();
}
