import type { Server } from 'node:http';
import type { Connection } from '../http/connection.js';

/**
 * A client that has just connected, or has just been answered, may be about to ask, and may be late
 * on a machine that is busy. Once it asks, the answer tells it that the connection ends; if that ended
 * before, its request would be lost.
 */
const RECENT_MS = 1_000;

/**
 * Closes connections on which nothing is going on, and those that never sent a byte.
 *
 * @param patient closes none while a client may be about to ask.
 */
export function closeIdleConnections(
  servers: Iterable<Server>,
  connections: ReadonlySet<Connection>,
  patient: boolean,
): void {
  const now = performance.now();
  // Node closes all that are idle, or none.
  for (const { inFlight, startedAt } of connections) {
    if (patient && inFlight === 0 && now - startedAt < RECENT_MS) return;
  }
  // A server of HTTP/2 alone has no such method.
  for (const server of servers) server.closeIdleConnections?.();
  // Until Node 26.4 a connection that never sent a byte does not count as idle
  // (https://github.com/nodejs/node/issues/63452).
  for (const { socket, inFlight } of connections) {
    if (inFlight === 0 && socket.bytesRead === 0) socket.destroy();
  }
}
