import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Negotiator from 'negotiator';
import type { EndpointRequest, EndpointResponse } from '../endpoints/mount-endpoint.js';

const compress = promisify(gzip);

/** Smaller pages are not compressed, because compression would gain nothing. */
const MIN_GZIP_LENGTH = 1_024;

/** A page for all concurrent requests. It is compressed once, at the first request that needs it. */
export class MetricsPage {
  #gzipped: Promise<Buffer> | undefined;

  constructor(
    private readonly contentType: string,
    private readonly text: string,
  ) {}

  /** Responds in the encoding that the request's headers ask for. */
  async respond(request: EndpointRequest): Promise<EndpointResponse> {
    const { contentType, text } = this;
    const gzipped =
      text.length >= MIN_GZIP_LENGTH &&
      new Negotiator(request).encoding(['gzip', 'identity']) === 'gzip';
    return {
      status: 200,
      contentType,
      body: gzipped ? await (this.#gzipped ??= compress(text)) : text,
      headers: { Vary: 'Accept-Encoding', ...(gzipped && { 'Content-Encoding': 'gzip' }) },
    };
  }
}
