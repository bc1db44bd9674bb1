import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  histogramColumns,
  type Labels,
  labelText,
  type MetricFamily,
  PLAIN,
  type Row,
} from '../exposition/metric-family.js';
import type { SeriesLimit } from '../exposition/series-limit.js';
import type { ResponseObserver } from '../../contract/snapshot/index.js';
import { Buckets } from './buckets.js';
import { type RouteTemplateReader, UNMATCHED } from './route-template.js';

/** Methods with a label of their own; a client can send any word. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;
const OTHER = 'OTHER';

const METHOD_INDEX: ReadonlyMap<string, number> = new Map(METHODS.map((name, i) => [name, i]));
const OTHER_INDEX = METHODS.length;

/** Status codes have three digits: the method goes above them in one number. */
const METHOD_FACTOR = 1_000;

/** The route of requests beyond the limit of series: only a mistake gives an app so many routes. */
const OVERFLOW = 'other';

/** The share of a metric's series that is kept for the overflow. */
const OVERFLOW_SHARE = 0.05;

/** Stands for a status code if a request had no answer. */
const ABORTED = 0;

/** Sizes from an empty answer to a large download, in bytes. */
const SIZE_BOUNDS = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

/** What is counted of one route, method and status. */
interface Series {
  readonly seconds: Buckets;
  readonly bytes: Buckets;
  aborted: number;
}

/**
 * Duration and size of HTTP requests, and those whose clients left. prom-client's
 * own histogram builds a label object, checks it and hashes it on each observation,
 * which shows in a Fastify request's cost (BASELINES: 16 → 18.5 µs); this one indexes
 * two maps and adds to a few numbers, and becomes a metric only when it is scraped.
 */
export class HttpMetrics implements ResponseObserver {
  readonly #routes = new Map<string, Map<number, Series>>();
  #size = 0;
  /** The limit of series, without the share for the overflow. */
  readonly #maxSeries: number;

  constructor(
    private readonly prefix: string,
    private readonly boundsSeconds: readonly number[],
    private readonly readTemplate: RouteTemplateReader,
    private readonly limit: SeriesLimit,
    /** Slot that every series is labelled with, where each worker is to have its own. */
    private readonly workerLabel?: number,
  ) {
    this.#maxSeries = Math.ceil(limit.maxSeries * (1 - OVERFLOW_SHARE));
  }

  /** Counts one response. On the request path. */
  finished(
    request: IncomingMessage,
    response: ServerResponse,
    durationMs: number,
    bytes: number | undefined,
  ): void {
    const series = this.#seriesOf(request, response.statusCode);
    series.seconds.add(durationMs / 1_000);
    if (bytes !== undefined) series.bytes.add(bytes);
  }

  aborted(request: IncomingMessage): void {
    this.#seriesOf(request, ABORTED).aborted += 1;
  }

  /** The metrics as they are now. */
  families(): MetricFamily[] {
    const all = [...this.#routes]
      // First: where several workers have too many together, it is the last that are left out.
      .toSorted(([a], [b]) => Number(b === OVERFLOW) - Number(a === OVERFLOW))
      .flatMap(([route, byKey]) => [...byKey].map(([key, series]) => ({ route, key, series })));
    const histogram = (
      name: string,
      help: string,
      bounds: readonly number[],
      read: (series: Series) => Buckets,
    ): MetricFamily => ({
      name: `${this.prefix}${name}`,
      help,
      type: 'histogram',
      aggregator: 'sum',
      columns: histogramColumns(bounds),
      series: new Map(
        all
          .filter(({ series }) => read(series).used)
          .map(({ route, key, series }) => [
            this.#labels(key, route, { status_code: key % METHOD_FACTOR }),
            read(series).row(),
          ]),
      ),
    });
    return [
      histogram(
        'http_request_duration_seconds',
        'Duration of HTTP requests in seconds, by route template',
        this.boundsSeconds,
        ({ seconds }) => seconds,
      ),
      histogram(
        'http_response_size_bytes',
        'Size of HTTP responses with their heads in bytes, by route template',
        SIZE_BOUNDS,
        ({ bytes }) => bytes,
      ),
      {
        name: `${this.prefix}http_requests_aborted_total`,
        help: 'HTTP requests whose clients went away before the response was complete, by route template',
        type: 'counter',
        aggregator: 'sum',
        columns: PLAIN,
        series: new Map(
          all
            .filter(({ series }) => series.aborted > 0)
            .map(({ route, key, series }): [string, Row] => [
              this.#labels(key, route),
              [series.aborted],
            ]),
        ),
      },
    ];
  }

  #labels(key: number, route: string, others: Labels = {}): string {
    const method = METHODS[Math.floor(key / METHOD_FACTOR)] ?? OTHER;
    const worker = this.workerLabel;
    return labelText({ method, route, ...others, ...(worker !== undefined && { worker }) });
  }

  #seriesOf(request: IncomingMessage, status: number): Series {
    const template = this.readTemplate(request);
    // A client that tries methods on made-up paths would make a series of each.
    const named = template === UNMATCHED ? undefined : METHOD_INDEX.get(request.method!);
    const method = named ?? OTHER_INDEX;
    const key = method * METHOD_FACTOR + status;
    return this.#routes.get(template)?.get(key) ?? this.#addSeries(template, key);
  }

  /**
   * Series are also limited here, not only where they are read, so that series that are never shown
   * use no memory. Further requests are counted as one route, so that sums over all routes stay
   * right.
   */
  #addSeries(template: string, key: number): Series {
    if (this.#size >= this.#maxSeries && template !== OVERFLOW) {
      this.limit.dropped(`${this.prefix}http_request_duration_seconds`, 1);
      return this.#routes.get(OVERFLOW)?.get(key) ?? this.#addSeries(OVERFLOW, key);
    }
    if (template !== OVERFLOW) this.#size += 1;
    let byKey = this.#routes.get(template);
    if (byKey === undefined) this.#routes.set(template, (byKey = new Map()));
    const series: Series = {
      seconds: new Buckets(this.boundsSeconds),
      bytes: new Buckets(SIZE_BOUNDS),
      aborted: 0,
    };
    byKey.set(key, series);
    return series;
  }
}
