import type { RequestLine } from '../quarantine/describe-request.js';

const MAX_METHOD_LENGTH = 32;
const MAX_URL_LENGTH = 200;
const SPACE = 0x20;

/** Read once: the getter costs about 20 ns. */
const ORIGIN_MS = performance.timeOrigin;

/** Memory that two threads share. Typed arrays stay shared when they are passed as `workerData`. */
export interface LastRequestMemory {
  /** Bytes of {@link text} in use, 0 without a request; then the time of its beginning, in ms since 1970. */
  readonly numbers: Float64Array;
  /** Method, space and URL in latin1. The URL has its query, and is cut. */
  readonly text: Uint8Array;
}

/**
 * The request that began last. Native code keeps the main thread from answering the inspector;
 * its watchdog reads the request here.
 */
export class LastRequest implements LastRequestMemory {
  readonly numbers = new Float64Array(new SharedArrayBuffer(2 * Float64Array.BYTES_PER_ELEMENT));
  readonly text = Buffer.from(new SharedArrayBuffer(MAX_METHOD_LENGTH + 1 + MAX_URL_LENGTH));
  #request: object | undefined;

  /**
   * A request has begun. On the request path.
   *
   * @param startedAt monotonic ms.
   */
  began(request: Pick<RequestLine, 'method' | 'url'>, startedAt: number): void {
    const { numbers, text } = this;
    const { method = '', url = '' } = request;
    this.#request = request;
    numbers[0] = 0; // so that the watchdog reads no half of a text
    const space = text.write(method, 0, MAX_METHOD_LENGTH, 'latin1');
    text[space] = SPACE;
    numbers[1] = ORIGIN_MS + startedAt;
    numbers[0] = space + 1 + text.write(url, space + 1, MAX_URL_LENGTH, 'latin1');
  }

  /** A request is over, whether it was answered or not. On the request path. */
  ended(request: object | undefined): void {
    if (this.#request !== request) return;
    this.#request = undefined;
    this.numbers[0] = 0;
  }
}
