import { chmodSync, existsSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import type { Engine } from './engine.interface.js';
import { RELEASE } from './relay.js';

/** Serves the sessions of this worker. */
export type OwnSessions = Pick<Engine, 'handleRequest' | 'handleUpgrade'> & {
  /** Answers the waiting poll of a session without loss, because the worker that relays it exits. */
  release(request: Parameters<Engine['prepare']>[0]): void;
};

/** Above Node's default of 16 KiB, because the relaying worker has checked the headers. */
const MAX_HEADER_BYTES = 64 * 1024;

/** How often to check that the socket's file exists, in ms: the OS may remove it, e.g. at the user's logout. */
const CHECK_MS = 1_000;

/**
 * Listens for the requests that other workers relay. The HTTP server does not listen itself, so a
 * drain neither closes nor counts it.
 *
 * @param lost called when the socket's file is gone, and the socket is closed.
 */
export async function listenForRelays(
  path: string,
  own: OwnSessions,
  lost: () => void,
): Promise<void> {
  const http = createHttpServer({ maxHeaderSize: MAX_HEADER_BYTES, keepAliveTimeout: 0 });
  http.on('request', (request, response) => {
    if (request.headers[RELEASE] === undefined) return own.handleRequest(request, response);
    own.release(request);
    response.end();
  });
  http.on('upgrade', own.handleUpgrade);
  const server = createServer((socket) => http.emit('connection', socket));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    // `exclusive`, because node:cluster would have the primary listen.
    server.listen({ path, exclusive: true }, resolve);
  });
  chmodSync(path, 0o600);
  server.on('error', () => {}).unref(); // without free descriptors, it accepts connections later
  const remove = (): void => rmSync(path, { force: true });
  process.once('exit', remove);
  const check = setInterval(() => {
    if (existsSync(path)) return;
    clearInterval(check);
    process.off('exit', remove);
    server.close();
    lost();
  }, CHECK_MS).unref();
}
