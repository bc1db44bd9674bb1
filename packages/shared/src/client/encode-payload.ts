import { serialize } from 'node:v8';
import { ClusterSharedError } from '../errors.js';
import { MAX_BODY_BYTES } from '../wire/limits.js';

/**
 * Encodes a value for other workers, which get a copy as by `structuredClone()`.
 *
 * @param what the value's name for the error message: `the payload of the event 'paid'`.
 * @throws ClusterSharedError if the value cannot be copied, or is too large.
 */
export function encodePayload(what: string, value: unknown): Buffer {
  let body: Buffer;
  try {
    body = serialize(value);
  } catch (error) {
    throw new ClusterSharedError(
      `${what} cannot be copied: ${(error as Error).message}; send plain data`,
    );
  }
  if (body.length <= MAX_BODY_BYTES) return body;
  throw new ClusterSharedError(
    `${what} has ${body.length} bytes; it may have ${MAX_BODY_BYTES}: send a key by which the receivers find it`,
  );
}
