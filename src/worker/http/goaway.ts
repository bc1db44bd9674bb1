import type { Http2Session } from 'node:http2';

/** The code NO_ERROR (RFC 9113, 7). Node's constant would load node:http2 into every worker. */
const NO_ERROR = 0x0;

/** The highest number that a stream can have. */
const LAST_STREAM_ID = 2 ** 31 - 1;

const GRACE_MS = 250;

/**
 * Asks a session's client to open another session, by a GOAWAY with the highest stream number as
 * the last one (RFC 9113, 6.8). nghttp2 nevertheless ignores each stream that begins after this
 * GOAWAY. It would accept such streams only after a "shutdown notice", and Node 20 to 26 cannot
 * send one. When the session closes, it refuses the requests that the client sent before it got the
 * GOAWAY. Such requests have not begun, so the client can safely send them again.
 */
export function announceClose(session: Http2Session): void {
  // A destroyed session is not `closed` until its socket is closed, and goaway() on it throws.
  if (!session.closed && !session.destroyed) session.goaway(NO_ERROR, LAST_STREAM_ID);
}

/**
 * Sends a GOAWAY as {@link announceClose} does, and closes the session soon after. Call this just
 * after a request has arrived: the client's next request is then least likely to be on its way.
 */
export function closeGracefully(session: Http2Session): void {
  announceClose(session);
  setTimeout(() => session.close(), GRACE_MS).unref();
}
