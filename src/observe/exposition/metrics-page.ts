import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Negotiator from 'negotiator';
import type { MetricFamily } from './metric-family.js';
import { CONTENT_TYPE, renderPage } from './render-page.js';

const compress = promisify(gzip);

/** Smaller pages gain nothing. */
const MIN_GZIP_LENGTH = 1_024;

/** A page of metrics as it goes over HTTP. */
export interface PageResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** What is asked for: the same on every adapter. */
export interface PageRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A page for all that ask for it at once: it is written once, and compressed once, when it is first asked for. */
export class MetricsPage {
  #text: string | undefined;
  #gzipped: Promise<Buffer> | undefined;

  constructor(private readonly families: readonly MetricFamily[]) {}

  /** In the encoding that the request's headers ask for. */
  async respond(request: PageRequest): Promise<PageResponse> {
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
