import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Refusal } from './guard-request.js';

/** Hashes are compared, so that the time tells nothing about the token or its length. */
export function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/**
 * Refuses a request without the token, sent as `Authorization: Bearer …`. Wrong tokens are not
 * counted: a token of 16 characters or more is too long to be guessed, and a lock would keep out
 * its owner, who shares the address of a proxy or a node with others.
 *
 * @param expected hash of the token; `undefined` lets everybody in.
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
