import type { IncomingMessage, ServerResponse } from 'node:http';
import type { MetricJson, Sample } from './metric-json.js';
import type { RouteTemplateReader } from './route-template.js';

/** Methods with a label of their own; a client can send any word. */
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;
const OTHER = 'OTHER';

const METHOD_INDEX: ReadonlyMap<string, number> = new Map(METHODS.map((name, i) => [name, i]));
const OTHER_INDEX = METHODS.length;

/** Status codes have three digits: the method goes above them in one number. */
const METHOD_FACTOR = 1_000;

/** What is counted of one route, method and status. */
interface Series {
  /** Observations at or below each bound and above the one before; the last is +Inf's. */
  readonly counts: number[];
  sumSeconds: number;
}

/**
 * The histogram `http_request_duration_seconds`. prom-client's own builds a
 * label object, checks it and hashes it on each observation, which shows in a
 * Fastify request's cost (BASELINES: 16 → 18.5 µs); this one indexes two maps
 * and adds to two numbers, and becomes a metric only when it is scraped.
 */
export class HttpRequestDuration {
  readonly help = 'Duration of HTTP requests in seconds, by route template';
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly #routes = new Map<string, Map<number, Series>>();

  constructor(
    readonly name: string,
    private readonly bucketsSeconds: readonly number[],
    private readonly readTemplate: RouteTemplateReader,
  ) {}

  /** Counts one response. On the request path. */
  observe(request: IncomingMessage, response: ServerResponse, durationMs: number): void {
    const template = this.readTemplate(request);
    const method = METHOD_INDEX.get(request.method!) ?? OTHER_INDEX;
    const key = method * METHOD_FACTOR + response.statusCode;
    const series = this.#routes.get(template)?.get(key) ?? this.#addSeries(template, key);
    const seconds = durationMs / 1_000;
    const bounds = this.bucketsSeconds;
    let bucket = 0;
    while (bucket < bounds.length && seconds > bounds[bucket]!) bucket += 1;
    series.counts[bucket]! += 1;
    series.sumSeconds += seconds;
  }

  /** The metric as prom-client's registry reads it. */
  get(): MetricJson {
    const values: Sample[] = [];
    for (const [route, byKey] of this.#routes) {
      for (const [key, series] of byKey) this.#addSamples(values, route, key, series);
    }
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values };
  }

  /** Called by `registry.resetMetrics()`. */
  reset(): void {
    this.#routes.clear();
  }

  #addSeries(template: string, key: number): Series {
    let byKey = this.#routes.get(template);
    if (byKey === undefined) this.#routes.set(template, (byKey = new Map()));
    const series: Series = {
      counts: Array.from({ length: this.bucketsSeconds.length + 1 }, () => 0),
      sumSeconds: 0,
    };
    byKey.set(key, series);
    return series;
  }

  #addSamples(values: Sample[], route: string, key: number, series: Series): void {
    const method = METHODS[Math.floor(key / METHOD_FACTOR)] ?? OTHER;
    const labels = { method, route, status_code: String(key % METHOD_FACTOR) };
    let count = 0;
    [...this.bucketsSeconds, '+Inf'].forEach((le, index) => {
      count += series.counts[index]!;
      values.push({ metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count });
    });
    values.push({ metricName: `${this.name}_sum`, labels, value: series.sumSeconds });
    values.push({ metricName: `${this.name}_count`, labels, value: count });
  }
}
