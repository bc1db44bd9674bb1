import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';

/** Node's own text of the head that was sent: what was given to `writeHead()` is nowhere else. */
type SentResponse = (ServerResponse | Http2ServerResponse) & { readonly _header?: string | null };

const EVENT_STREAM = 'text/event-stream';

/** Whether a response whose head was sent is a stream of server-sent events. On the request path. */
export function isEventStream(response: SentResponse): boolean {
  const type = response.getHeader('content-type') ?? response._header;
  return typeof type === 'string' && type.includes(EVENT_STREAM);
}

/** Whether it is one that is open. */
export function isOpenEventStream(response: SentResponse): boolean {
  if (!response.headersSent || response.writableEnded) return false;
  return isEventStream(response);
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
