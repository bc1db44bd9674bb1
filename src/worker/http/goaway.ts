import type { Http2Session } from 'node:http2';

/** RFC 9113, 7. Node's own constants would load its HTTP/2 into every worker. */
const NO_ERROR = 0x0;

/** The highest number that a stream can have. */
const LAST_STREAM_ID = 2 ** 31 - 1;

/** How long a session that was told to go stays open for the streams that have begun. */
const GRACE_MS = 250;

/**
 * Asks a session's client to go elsewhere, by a GOAWAY that names no last stream (RFC 9113, 6.8).
 * nghttp2 ignores each stream that begins after it, though: only a "shutdown notice" would let
 * them in, and Node has no call for one (20 to 26). The session's close refuses requests
 * that cross the GOAWAY before they begin, so they are safe to send again.
 */
export function announceClose(session: Http2Session): void {
  // One that was destroyed is not closed until its socket is, and throws.
  if (!session.closed && !session.destroyed) session.goaway(NO_ERROR, LAST_STREAM_ID);
}

/**
 * The same, and closes the session soon. To be called when a request has arrived: its client is then
 * least likely to have another on its way.
 */
export function closeGracefully(session: Http2Session): void {
  announceClose(session);
  setTimeout(() => session.close(), GRACE_MS).unref();
}
