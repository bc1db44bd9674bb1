import type { IncomingMessage, ServerResponse } from 'node:http';

const ASKED = Symbol('nestjs-cluster.asked-to-close');
type MarkedResponse = ServerResponse & { [ASKED]?: true };

/**
 * Lets the response carry `Connection: close` (RFC 9112, 9.6), unless its head
 * has left already or its connection would close anyway.
 *
 * @returns whether it asks now and would not have without this.
 */
export function askToClose(response: MarkedResponse): boolean {
  if (response.headersSent || !response.shouldKeepAlive) return false;
  response.shouldKeepAlive = false;
  response[ASKED] = true;
  return true;
}

/** Takes it back, where its head has not left. */
export function takeBack(response: MarkedResponse): void {
  if (response[ASKED] && !response.headersSent) response.shouldKeepAlive = true;
}

/**
 * Whether a request announces a body. Answered with `Connection: close` before
 * all of it was read, the connection would be reset, and the answer lost.
 */
export function hasBody({ headers }: IncomingMessage): boolean {
  return (
    headers['transfer-encoding'] !== undefined ||
    (headers['content-length'] !== undefined && headers['content-length'] !== '0')
  );
}
