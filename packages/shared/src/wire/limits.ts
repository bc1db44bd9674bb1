/** The version of the protocol. During a rolling release two versions may meet. */
export const HUB_VERSION = 1;

/** The maximum size of a frame. A larger frame is not sent. */
export const MAX_FRAME_BYTES = 24 * 1024 * 1024;

/** The maximum size of a cached value or an event's payload. A larger value or payload is refused. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** The maximum length of a name or a key, in characters. A longer name or key is refused. */
export const MAX_TEXT_LENGTH = 16 * 1024;

export const NO_BODY = Buffer.alloc(0);

export function tooLarge(bytes: number, max = MAX_FRAME_BYTES): string {
  return `it has ${bytes} bytes; the hub takes ${max} at most`;
}
