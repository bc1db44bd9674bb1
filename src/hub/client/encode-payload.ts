import { serialize } from 'node:v8';
import { oneLine, UncloneableValueError } from '../../contract/errors/index.js';
import { MAX_BODY_BYTES } from '../wire/protocol.js';

/**
 * What other workers are sent, as `structuredClone()` would copy it.
 *
 * @param what for the message: `the payload of the event 'paid'`.
 * @throws UncloneableValueError where it cannot be copied, or is too large.
 */
export function encodePayload(what: string, value: unknown): Buffer {
  let body: Buffer;
  try {
    body = serialize(value);
  } catch (error) {
    throw new UncloneableValueError(
      oneLine(`${what} cannot be copied: ${(error as Error).message}; send plain data`),
    );
  }
  if (body.length <= MAX_BODY_BYTES) return body;
  throw new UncloneableValueError(
    oneLine(
      `${what} has ${body.length} bytes; it may have ${MAX_BODY_BYTES}: send a key by which the receivers find it`,
    ),
  );
}
