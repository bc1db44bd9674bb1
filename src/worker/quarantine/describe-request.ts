import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { BlockedRequest } from '../../contract/ipc/index.js';

const MAX_PATH_LENGTH = 200;

export type RequestLine = Partial<Record<'method' | 'url' | 'originalUrl', string>>;

/** The method and path of a request, without the query: it may hold secrets. */
export function describeRequest(request: RequestLine, forMs: number): BlockedRequest {
  // Express cuts off the part that a router has matched. `originalUrl` has the whole.
  const { originalUrl, url } = request;
  const path = (originalUrl ?? url ?? '').split('?')[0]!.slice(0, MAX_PATH_LENGTH);
  return { method: request.method ?? '', path, forMs };
}

/** A request that is not answered. */
export interface RequestUnderWay {
  readonly request: RequestLine;
  readonly response: ServerResponse | Http2ServerResponse;
  /** Monotonic ms. */
  readonly startedAt: number;
}

/** The same for several. */
export function describeRequests(
  requests: readonly Pick<RequestUnderWay, 'request' | 'startedAt'>[],
): BlockedRequest[] {
  const now = performance.now();
  return requests.map(({ request, startedAt }) => describeRequest(request, now - startedAt));
}
