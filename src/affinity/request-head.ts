import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { RELEASE } from './owner-door.js';

/** Headers of one connection, and each of ours has its own. */
const OF_CONNECTION =
  /^(connection|expect|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/;

/** What is relayed of the headers of a request, or of an answer. */
export function relayedHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = Object.entries(headers).filter(
    ([name]) => !OF_CONNECTION.test(name) && name !== RELEASE,
  );
  return Object.fromEntries(kept);
}

/** The head of a request as Node has parsed it, so that no value ends a line. */
export function headOf({ method, url, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/1.1`];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]!.toLowerCase() === RELEASE) continue;
    lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
