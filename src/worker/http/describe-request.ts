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
  /** Monotonic ms. */
  readonly startedAt: number;
}

/** The same for several. */
export function describeRequests(requests: readonly RequestUnderWay[]): BlockedRequest[] {
  const now = performance.now();
  return requests.map(({ request, startedAt }) => describeRequest(request, now - startedAt));
}
