import { chmodSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type Server } from 'node:net';
import type { RelayLimit } from '../../contract/snapshot/index.js';
import type { OwnSessions } from './own-sessions.interface.js';

/** Asks the owner to release what waits: see {@link OwnSessions.release}. No client can send it. */
export const RELEASE = 'x-nestjs-cluster-release';

/** Other workers have checked what is longer. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Takes in what other workers relay. It is no server that listens by itself, so that the drain neither
 * closes nor counts it: its sessions end before. Above the limit it still releases waiting requests,
 * since that frees connections.
 */
export async function openDoor(
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
  server.on('error', () => {}); // for want of descriptors it accepts later
  chmodSync(path, 0o600);
  return server.unref();
}
