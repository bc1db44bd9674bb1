import type { IncomingMessage, ServerResponse } from 'node:http';
import { templateOf, UNMATCHED } from './route-template.js';
import type {
  MetricJson,
  MetricLabels,
  MetricValue,
  ResponseObserver,
} from '../../contract/snapshot/types.js';

/** Other methods share one label, because a client can send any text as the method. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;
const OTHER = 'OTHER';

const METHOD_INDEX: ReadonlyMap<string, number> = new Map(METHODS.map((name, i) => [name, i]));
const OTHER_INDEX = METHODS.length;

/** A series' key is `method index * 1000 + status code`. */
const METHOD_FACTOR = 1_000;

/** The route label of requests beyond {@link MAX_SERIES}. Only a faulty app has that many routes. */
const OVERFLOW = 'other';

/**
 * Maximum number of series, except the overflow's. A series takes 3 to 5 KB of a process's metrics,
 * which are limited to 16 MB.
 */
const MAX_SERIES = 2_000;

/** The status code in the key of aborted requests. */
const ABORTED = 0;

/** Bucket bounds in bytes, from an empty response to a large download. */
const SIZE_BOUNDS = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];

class Buckets {
  /** Not cumulative. The last count is for +Inf. */
  readonly #counts: number[];
  #sum = 0;

  constructor(private readonly bounds: readonly number[]) {
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  /** Called for every request. Must be cheap. */
  add(value: number): void {
    const { bounds } = this;
    let bucket = 0;
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1;
    this.#counts[bucket]! += 1;
    this.#sum += value;
  }

  get count(): number {
    return this.#counts.reduce((sum, each) => sum + each, 0);
  }

  values(name: string, labels: MetricLabels): MetricValue[] {
    let count = 0;
    const bucket = (each: number, i: number): MetricValue => {
      const le = this.bounds[i] ?? '+Inf';
      return { value: (count += each), labels: { le, ...labels }, metricName: `${name}_bucket` };
    };
    return [
      ...this.#counts.map(bucket),
      { value: this.#sum, labels, metricName: `${name}_sum` },
      { value: count, labels, metricName: `${name}_count` },
    ];
  }
}

/** The measurements of one route, method and status. */
interface Series {
  readonly seconds: Buckets;
  readonly bytes: Buckets;
  aborted: number;
}

/**
 * Measures the duration and size of HTTP responses, and counts aborted requests. prom-client's
 * histogram builds, checks and hashes a label object for each observation, which raises the cost of
 * a Fastify request from 16 to 18.5 µs (measured). This class only reads two maps and increments a
 * few numbers. It creates the metrics on each scrape.
 */
export class HttpMetrics implements ResponseObserver {
  readonly #routes = new Map<string, Map<number, Series>>();
  #size = 0;

  constructor(
    private readonly boundsSeconds: readonly number[],
    private readonly maxSeries = MAX_SERIES,
  ) {}

  /** Counts one response. Must be cheap. */
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

  metrics(): MetricJson[] {
    const all = [...this.#routes].flatMap(([route, byKey]) =>
      [...byKey].map(([key, series]) => {
        const method = METHODS[Math.floor(key / METHOD_FACTOR)] ?? OTHER;
        return { labels: { method, route }, status_code: key % METHOD_FACTOR, series };
      }),
    );
    const histogram = (name: string, help: string, read: (series: Series) => Buckets) => ({
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: all
        .filter(({ series }) => read(series).count > 0)
        .flatMap(({ labels, status_code, series }) =>
          read(series).values(name, { ...labels, status_code }),
        ),
    });
    return [
      histogram(
        'http_request_duration_seconds',
        'Duration of HTTP requests in seconds, by route template',
        ({ seconds }) => seconds,
      ),
      histogram(
        'http_response_size_bytes',
        'Size of HTTP responses in bytes, including headers, by route template',
        ({ bytes }) => bytes,
      ),
      {
        name: 'http_requests_aborted_total',
        help: 'HTTP requests whose clients disconnected before the response was complete, by route template',
        type: 'counter',
        aggregator: 'sum',
        values: all
          .filter(({ series }) => series.aborted > 0)
          .map(({ labels, series }) => ({ labels, value: series.aborted })),
      },
    ];
  }

  #seriesOf(request: IncomingMessage, status: number): Series {
    const template = templateOf(request);
    // One label, because vulnerability scanners try every method on paths that do not exist.
    const known = template === UNMATCHED ? undefined : METHOD_INDEX.get(request.method!);
    const method = known ?? OTHER_INDEX;
    const key = method * METHOD_FACTOR + status;
    return this.#routes.get(template)?.get(key) ?? this.#addSeries(template, key);
  }

  /**
   * Adds a series. Beyond the limit, requests count toward the route {@link OVERFLOW}, so that sums
   * over all routes stay correct.
   */
  #addSeries(template: string, key: number): Series {
    if (this.#size >= this.maxSeries && template !== OVERFLOW) {
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
