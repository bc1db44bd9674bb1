import type { ServerResponse } from 'node:http';

/**
 * Makes a 503 response carry `Retry-After`, because an exception of Nest has a status and a body
 * but no headers. If an exception filter answers with another status, the header is not sent.
 *
 * @param seconds the value of the header, a whole number.
 */
export function adviseRetry(response: ServerResponse, seconds: number): void {
  if (response.headersSent) return;
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
  response.writeHead = (status: number, ...rest: unknown[]): ServerResponse => {
    if (status === 503 && !response.hasHeader('Retry-After')) {
      response.setHeader('Retry-After', String(seconds));
    }
    return writeHead(status, ...rest);
  };
}
