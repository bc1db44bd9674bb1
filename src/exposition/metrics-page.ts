import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import Negotiator from 'negotiator';
import type { MetricFamily } from './metric-family.js';
import { CONTENT_TYPES, type PageFormat, renderPage } from './render-page.js';

const compress = promisify(gzip);

/** Smaller pages gain nothing. */
const MIN_GZIP_LENGTH = 1_024;

/**
 * What is offered: the first to a client that takes anything. One that asks for a type with
 * parameters gets an offer that has them all, and Prometheus 3 asks by an escaping of names (ours
 * need none).
 */
const MEDIA_TYPES: Readonly<Record<string, PageFormat>> = {
  [CONTENT_TYPES.text]: 'text',
  ...Object.fromEntries(
    ['allow-utf-8', 'underscores', 'dots', 'values'].map((escaping) => [
      `${CONTENT_TYPES.openmetrics}; escaping=${escaping}`,
      'openmetrics' as const,
    ]),
  ),
};

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

/** A page for all that ask for it at once: each format and encoding is made once, when it is first asked for. */
export class MetricsPage {
  readonly #texts = new Map<PageFormat, string>();
  readonly #gzipped = new Map<PageFormat, Promise<Buffer>>();

  constructor(private readonly families: readonly MetricFamily[]) {}

  /** In the format and encoding that the request's headers ask for; text, where they ask for neither. */
  async respond(request: PageRequest): Promise<PageResponse> {
    const negotiator = new Negotiator(request);
    const format = MEDIA_TYPES[negotiator.mediaType(Object.keys(MEDIA_TYPES)) ?? ''] ?? 'text';
    const text = this.#text(format);
    const gzipped =
      text.length >= MIN_GZIP_LENGTH && negotiator.encoding(['gzip', 'identity']) === 'gzip';
    return {
      status: 200,
      contentType: CONTENT_TYPES[format],
      body: gzipped ? await this.#compressed(format) : text,
      headers: { Vary: 'Accept, Accept-Encoding', ...(gzipped && { 'Content-Encoding': 'gzip' }) },
    };
  }

  #text(format: PageFormat): string {
    let text = this.#texts.get(format);
    if (text === undefined) this.#texts.set(format, (text = renderPage(this.families, format)));
    return text;
  }

  #compressed(format: PageFormat): Promise<Buffer> {
    let gzipped = this.#gzipped.get(format);
    if (gzipped === undefined) {
      this.#gzipped.set(format, (gzipped = compress(this.#text(format))));
    }
    return gzipped;
  }
}
