import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Refusal } from './guard-request.js';

/** Hashes a token. Comparing hashes takes the same time for every token, so timing reveals nothing. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/**
 * Refuses a request without the token in `Authorization: Bearer …`. Wrong tokens do not block an
 * address. A token of 16 characters or more cannot be guessed, and a block would also hit
 * legitimate clients behind the same proxy or node.
 *
 * @param expected hash of the token; with `undefined` no token is required.
 */
export function unauthorized(
  { headers }: Pick<IncomingMessage, 'headers'>,
  expected: Uint8Array | undefined,
): Refusal | undefined {
  if (expected === undefined) return undefined;
  const [, token] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (token !== undefined && timingSafeEqual(hashOf(token), expected)) return undefined;
  return {
    status: 401,
    message: 'unauthorized: send the token as Authorization: Bearer …',
    headers: { 'WWW-Authenticate': 'Bearer realm="nestjs-cluster"' },
  };
}
