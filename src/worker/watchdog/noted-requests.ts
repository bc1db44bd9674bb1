import { MAX_BLOCKED_REQUESTS } from '../../contract/ipc/index.js';
import type { RequestLine } from '../quarantine/describe-request.js';

const MAX_METHOD_LENGTH = 32;
const MAX_URL_LENGTH = 200;
const SPACE = 0x20;

/** The number of bytes for a method, a space and a URL. */
const LINE_BYTES = MAX_METHOD_LENGTH + 1 + MAX_URL_LENGTH;

/** `performance.timeOrigin`, read only once, because the getter takes about 20 ns. */
const ORIGIN_MS = performance.timeOrigin;

type NotedRequest = RequestLine & { readonly socket?: unknown };

/** Memory that two threads share, with a place for each request. */
export interface NotedRequestsMemory {
  /** The length of each place's text, in bytes; 0 if the place has no request. */
  readonly lengths: Int32Array;
  /** When the request of each place began, in ms since 1970. */
  readonly startedAt: Float64Array;
  /** The text of each place: method, space and URL with its query, in latin1, cut at {@link LINE_BYTES}. */
  readonly text: Uint8Array;
}

/**
 * Some requests in flight, always including the newest, in shared memory. While native code blocks
 * the main thread, it cannot answer the watchdog, so the watchdog reads the requests here.
 */
export class NotedRequests implements NotedRequestsMemory {
  readonly lengths = new Int32Array(shared(Int32Array.BYTES_PER_ELEMENT));
  readonly startedAt = new Float64Array(shared(Float64Array.BYTES_PER_ELEMENT));
  readonly text = Buffer.from(shared(LINE_BYTES));
  /** The request of each place. */
  readonly #requests = Array<NotedRequest | undefined>(MAX_BLOCKED_REQUESTS).fill(undefined);
  /** The place that was taken last. */
  #last = 0;

  /** Notes a request. Runs for every request. @param startedAt when the request began, in monotonic ms. */
  began(request: NotedRequest, startedAt: number): void {
    const { lengths, text } = this;
    const { method = '', url = '' } = request;
    const free = this.#requests.indexOf(undefined);
    const place = free === -1 ? (this.#last + 1) % MAX_BLOCKED_REQUESTS : free;
    this.#last = place;
    this.#requests[place] = request;
    lengths[place] = 0; // so that the watchdog does not read a half-written text
    const begin = place * LINE_BYTES;
    const space = begin + text.write(method, begin, MAX_METHOD_LENGTH, 'latin1');
    text[space] = SPACE;
    this.startedAt[place] = ORIGIN_MS + startedAt;
    lengths[place] = space + 1 + text.write(url, space + 1, MAX_URL_LENGTH, 'latin1') - begin;
  }

  /** A request has ended, with or without a complete response. Runs for every request. */
  ended(request: NotedRequest): void {
    const place = this.#requests.indexOf(request);
    if (place === -1) return;
    this.#requests[place] = undefined;
    this.lengths[place] = 0;
  }

  /** A connection is closed: forgets all of its requests. */
  left(socket: unknown): void {
    for (const request of this.#requests) {
      if (request && request.socket === socket) this.ended(request);
    }
  }
}

function shared(bytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(MAX_BLOCKED_REQUESTS * bytes);
}
