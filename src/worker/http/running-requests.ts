import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { BlockedRequest } from '../../contract/messages.js';
import { isOpenEventStream } from './event-stream.js';
import type { RequestTracker } from './request-tracker.js';

const MAX_REQUESTS = 10;
const MAX_PATH_LENGTH = 200;

type RequestLine = Partial<Record<'method' | 'url' | 'originalUrl', string>>;

export interface RequestUnderWay {
  readonly request: RequestLine;
  readonly response: ServerResponse | Http2ServerResponse;
  /** When the request began, in monotonic ms. */
  readonly startedAt: number;
}

/** The path of a URL, without the scheme and authority of `GET http://host/path`. */
const PATH = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)/i;

/**
 * The requests that may end or block this process. If the current code runs in the asynchronous
 * context of a request, only this request, which may be answered already. Otherwise the requests in
 * flight, the newest first, without event streams, which are open in every worker.
 */
export function runningRequests({
  inFlight,
  scopes,
}: Pick<RequestTracker, 'inFlight' | 'scopes'>): BlockedRequest[] {
  const { current } = scopes;
  const running =
    current === undefined
      ? inFlight.filter(({ response }) => !isOpenEventStream(response)).toReversed()
      : [{ request: current, startedAt: current.startedAt }];
  const now = performance.now();
  return running
    .slice(0, MAX_REQUESTS)
    .map(({ request, startedAt }) => ({ ...describe(request), forMs: now - startedAt }));
}

/** The method and the path without the query, which may hold secrets. */
function describe({ method = '', url = '', originalUrl = url }: RequestLine) {
  // In `url`, Express cuts off the part that a router has matched. `originalUrl` has the whole URL.
  return { method, path: PATH.exec(originalUrl)![1]!.slice(0, MAX_PATH_LENGTH) };
}
