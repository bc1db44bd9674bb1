import type { ServerResponse } from 'node:http';

/**
 * Sends `Retry-After` with a 503: an exception of Nest has a status and a body,
 * and no headers. An exception filter that answers something else sends none.
 *
 * @param seconds whole.
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
