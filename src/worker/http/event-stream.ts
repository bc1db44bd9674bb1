import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';

/** `_header` is the text of the sent head. Node keeps headers of `writeHead()` only there. */
type SentResponse = (ServerResponse | Http2ServerResponse) & { readonly _header?: string | null };

const EVENT_STREAM = 'text/event-stream';

/** Whether a response whose head was sent has server-sent events. Runs for every request. */
export function isEventStream(response: SentResponse): boolean {
  const type = response.getHeader('content-type') ?? response._header;
  return typeof type === 'string' && type.includes(EVENT_STREAM);
}

/** Whether a response is a stream of server-sent events that has begun and not ended. */
export function isOpenEventStream(response: SentResponse): boolean {
  if (!response.headersSent || response.writableEnded) return false;
  return isEventStream(response);
}

/** Ends an event stream, which never ends by itself. The client reconnects, to another worker. */
export function endEventStream(
  response: ServerResponse | Http2ServerResponse,
  ended: () => void = () => {},
): void {
  response.end(ended);
  // Ignores further writes: the app may write again before it learns that the stream has ended.
  // Over HTTP/2 such a write would reset the stream. Over HTTP/1.1 it would be an uncaught error.
  response.write = () => true;
  response.end = () => response as never;
}
