import type { IncomingMessage } from 'node:http';
import { Refusal } from './route.js';

const MAX_BODY_BYTES = 64 * 1024;

/**
 * Refuses requests of web pages. A browser cannot connect to a unix socket by itself, but a web page
 * may reach the socket through a proxy on this machine.
 */
export function guardCall({ method, headers }: Pick<IncomingMessage, 'method' | 'headers'>): void {
  if (headers.host !== 'localhost') {
    throw new Refusal(421, 'MISDIRECTED', 'misdirected request: the Host header is not localhost');
  }
  if (headers.origin !== undefined || (headers['sec-fetch-site'] ?? 'none') !== 'none') {
    throw new Refusal(403, 'FOREIGN_ORIGIN', 'forbidden: the request comes from a web page');
  }
  if (method === 'POST' && !isJson(headers['content-type'])) {
    throw new Refusal(
      415,
      'UNSUPPORTED_MEDIA_TYPE',
      'a POST needs the header "Content-Type: application/json"',
    );
  }
}

/** @throws Refusal if the body is too large or not JSON. */
export async function readBody(request: IncomingMessage): Promise<unknown> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_BODY_BYTES) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > MAX_BODY_BYTES) throw tooLarge();
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof Refusal) throw error;
    // the client has left
    throw new Refusal(400, 'ABORTED', 'the body did not come');
  }
  if (bytes === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    throw new Refusal(400, 'BAD_REQUEST', 'the body is not JSON');
  }
}

function isJson(contentType: string | undefined): boolean {
  return contentType?.split(';')[0]!.trim().toLowerCase() === 'application/json';
}

function tooLarge(): Refusal {
  return new Refusal(413, 'TOO_LARGE', `the body is larger than ${MAX_BODY_BYTES} bytes`);
}
