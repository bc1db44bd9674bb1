import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { RELEASE } from './relay-server.js';

/** Headers that are not relayed, because they describe one connection only. */
const OF_CONNECTION =
  /^(connection|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** The headers of an answer that are relayed. */
export function relayedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = Object.entries(headers).filter(
    ([name]) => !OF_CONNECTION.test(name) && name !== RELEASE,
  );
  return Object.fromEntries(kept);
}

/** The headers of a request that are relayed. Node sets the length of the request's body again. */
export function requestHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const { 'content-length': _, ...others } = relayedHeaders(headers);
  return others;
}

/** Whether the client has announced a body. */
export function hasBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || length !== '0';
}

/** The head of a request as bytes. Node has parsed the head, so no value contains a line break. */
export function headOf({ method, url, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/1.1`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]!.toLowerCase() === RELEASE) continue;
    lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
