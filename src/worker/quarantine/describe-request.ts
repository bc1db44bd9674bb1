import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { BlockedRequest } from '../../contract/ipc/index.js';

const MAX_PATH_LENGTH = 200;

export type RequestLine = Partial<Record<'method' | 'url' | 'originalUrl', string>>;

/** The URL and the path, without the scheme and authority of `GET http://host/path`. Routers ignore a fragment. */
const TARGET = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?(?<url>(?<path>[^?#]*).*)/is;

/** The URL of a request with its query, which may hold secrets, and the path. Neither is shortened. */
export function targetOf({ originalUrl, url = '' }: RequestLine): Record<'url' | 'path', string> {
  // In `url`, Express cuts off the part that a router has matched. `originalUrl` has the whole URL.
  return TARGET.exec(originalUrl ?? url)!.groups as Record<'url' | 'path', string>;
}

/** The method and the shortened path of a request. */
export function describeRequest(request: RequestLine): Omit<BlockedRequest, 'forMs'> {
  const path = targetOf(request).path.slice(0, MAX_PATH_LENGTH);
  return { method: request.method ?? '', path };
}

/** Whether a path is one of the endpoints, or a path below one of them. */
export function isUnder(endpoints: readonly string[], path: string): boolean {
  return endpoints.some((own) => path === own || path.startsWith(`${own}/`));
}

/** A request whose response is not complete. */
export interface RequestUnderWay {
  readonly request: RequestLine;
  readonly response: ServerResponse | Http2ServerResponse;
  /** When the request began, in monotonic ms. */
  readonly startedAt: number;
}

/** Describes several requests by {@link describeRequest}, with the time since each began. */
export function describeRequests(
  requests: readonly Pick<RequestUnderWay, 'request' | 'startedAt'>[],
): BlockedRequest[] {
  const now = performance.now();
  return requests.map(({ request, startedAt }) => ({
    ...describeRequest(request),
    forMs: now - startedAt,
  }));
}
