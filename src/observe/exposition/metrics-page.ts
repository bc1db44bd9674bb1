import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Negotiator from 'negotiator';
import type { EndpointRequest, EndpointResponse } from '../endpoints/mount-endpoint.js';
import type { MetricFamily } from './metric-family.js';
import { CONTENT_TYPE, renderPage } from './render-page.js';

const compress = promisify(gzip);

/** Smaller pages are not compressed, because compression would gain nothing. */
const MIN_GZIP_LENGTH = 1_024;

/** A page for all concurrent requests. It is rendered once and compressed once, at the first request that needs it. */
export class MetricsPage {
  #text: string | undefined;
  #gzipped: Promise<Buffer> | undefined;

  constructor(private readonly families: readonly MetricFamily[]) {}

  /** Responds in the encoding that the request's headers ask for. */
  async respond(request: EndpointRequest): Promise<EndpointResponse> {
    const text = (this.#text ??= renderPage(this.families));
    const gzipped =
      text.length >= MIN_GZIP_LENGTH &&
      new Negotiator(request).encoding(['gzip', 'identity']) === 'gzip';
    return {
      status: 200,
      contentType: CONTENT_TYPE,
      body: gzipped ? await (this.#gzipped ??= compress(text)) : text,
      headers: { Vary: 'Accept-Encoding', ...(gzipped && { 'Content-Encoding': 'gzip' }) },
    };
  }
}
