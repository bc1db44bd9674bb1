import { chmodSync } from 'node:fs';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import type { Engine, EngineRequest } from './engine.interface.js';

/** Asks the owner to answer a poll that waits: the worker that relays it leaves. No client can send it. */
export const RELEASE = 'x-nestjs-cluster-release';

/** Other workers have checked what is longer. */
const MAX_HEADER_BYTES = 64 * 1024;

/**
 * Takes in the requests of this worker's sessions that reached others. It is no server that listens
 * by itself, so that the drain neither closes nor counts it: its sessions end before.
 */
export async function ownSessions(
  engine: Engine,
  { handleRequest, handleUpgrade }: Pick<Engine, 'handleRequest' | 'handleUpgrade'>,
  path: string,
): Promise<void> {
  const http = createHttpServer({ maxHeaderSize: MAX_HEADER_BYTES, keepAliveTimeout: 0 });
  http.on('request', (request: EngineRequest, response: ServerResponse) => {
    if (request.headers[RELEASE] === undefined) return handleRequest(request, response);
    engine.prepare(request);
    const { transport } = engine.clients[String(request._query!['sid'])] ?? {};
    if (transport?.name === 'polling' && transport.writable) transport.send([{ type: 'noop' }]);
    response.end();
  });
  http.on('upgrade', handleUpgrade);
  const server = createServer((socket) => http.emit('connection', socket));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  server.on('error', () => {}); // for want of descriptors it accepts later
  chmodSync(path, 0o600);
  server.unref();
}
