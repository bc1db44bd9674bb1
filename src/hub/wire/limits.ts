/** Both ends are of one package, but a rolling release may bring two versions together. */
export const HUB_VERSION = 1;

/** The limit for header and body of one frame. A larger frame is skipped, and its sender is told. */
export const MAX_FRAME_BYTES = 24 * 1024 * 1024;

/** The limit for a value of the cache, or the payload of an event. */
export const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** The limit for a name or a key, in characters. */
export const MAX_TEXT_LENGTH = 16 * 1024;

export const NO_BODY = Buffer.alloc(0);

export function tooLarge(bytes: number, max = MAX_FRAME_BYTES): string {
  return `it has ${bytes} bytes; the hub takes ${max} at most`;
}
