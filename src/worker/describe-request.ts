import type { BlockedRequest } from '../ipc/index.js';

const MAX_PATH_LENGTH = 200;

type RequestLine = Partial<Record<'method' | 'url' | 'originalUrl', string>>;

/** What a request asks for, without the query: that may hold secrets. */
export function describeRequest(request: RequestLine, forMs: number): BlockedRequest {
  // Express cuts off what a router has matched; the whole is kept beside it.
  const { originalUrl, url } = request;
  const path = (originalUrl ?? url ?? '').split('?')[0]!.slice(0, MAX_PATH_LENGTH);
  return { method: request.method ?? '', path, forMs };
}
