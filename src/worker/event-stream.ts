import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';

/** Node's own text of the head that was sent: what was given to `writeHead()` is nowhere else. */
type SentResponse = (ServerResponse | Http2ServerResponse) & { readonly _header?: string | null };

/** Whether a response is an open stream of server-sent events. */
export function isOpenEventStream(response: SentResponse): boolean {
  if (!response.headersSent || response.writableEnded) return false;
  const type = response.getHeader('content-type') ?? response._header;
  return typeof type === 'string' && /text\/event-stream/i.test(type);
}

/** Ends a stream that has no end of its own; its client connects again, elsewhere. */
export function endEventStream(
  response: ServerResponse | Http2ServerResponse,
  ended: () => void = () => {},
): void {
  response.end(ended);
  // Its source may write once more before it hears that nobody listens: over HTTP/2 that would
  // reset the stream, over HTTP/1.1 be an error that nobody caught.
  response.write = () => true;
  response.end = () => response as never;
}
