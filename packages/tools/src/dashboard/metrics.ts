import type { ClusterStatus } from '../cluster.js';
import { sum } from '../sum.js';

/** Values that only the metrics contain. A missing value or NaN is unknown. */
export interface Readings {
  readonly p50Ms?: number;
  readonly p95Ms?: number;
  readonly p99Ms?: number;
  /** Number of `@CpuBound()` calls waiting for a thread. */
  readonly queued?: number;
  /** Completed `@CpuBound()` calls per second. */
  readonly offloaded?: number;
}

/** The cumulative counts of a histogram, summed over its series, by upper bound in seconds. */
type Buckets = ReadonlyMap<number, number>;

interface Counts {
  readonly at: number;
  readonly latency: Buckets;
  readonly tasks: number | undefined;
}

const ANSWER_MS = 3_000;

export class Metrics {
  readings: Readings = {};
  /** Why the readings are unknown; `null` if they are known. */
  problem: string | null = 'the metrics have not been read yet';
  #before: Counts | undefined;

  /** @param url the URL of the metrics. Default: on the admin listener, or else on the app's port. */
  constructor(private readonly url: string | undefined) {}

  async read({ options }: ClusterStatus): Promise<void> {
    const url = this.url ?? metricsUrlOf(options);
    try {
      this.readings = this.#readingsOf(await pageAt(url), performance.now() / 1_000);
      this.problem = null;
    } catch (error) {
      this.readings = {};
      this.#before = undefined;
      this.problem = `${(error as Error).message}; set the metrics URL with --metrics <url>`;
    }
  }

  #readingsOf(page: string, at: number): Readings {
    const before = this.#before;
    const now = { at, latency: latencyIn(page), tasks: sumOf(page, 'offload_tasks_total') };
    this.#before = now;
    const queued = sumOf(page, 'offload_queue_size')!;
    if (before === undefined) return { queued };
    const recent = [...now.latency].map(
      ([bound, count]) => [bound, count - (before.latency.get(bound) ?? 0)] as const,
    );
    return {
      p50Ms: quantile(recent, 0.5) * 1_000,
      p95Ms: quantile(recent, 0.95) * 1_000,
      p99Ms: quantile(recent, 0.99) * 1_000,
      queued,
      offloaded: Math.max(0, now.tasks! - before.tasks!) / (at - before.at),
    };
  }
}

async function pageAt(url: string | undefined): Promise<string> {
  if (url === undefined) throw new Error('the metrics URL is unknown');
  const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS) }).catch(() => {
    throw new Error(`${url} did not answer`);
  });
  if (!answer.ok) throw new Error(`${url} answered with status ${answer.status}`);
  return answer.text();
}

/** The default URL of the metrics: on the admin listener, or else on the app's own port. */
export function metricsUrlOf({ admin, ...app }: ClusterStatus['options']): string | undefined {
  const { port, host } = admin ?? app;
  // With port 0 the system chooses the port, so the options do not have it.
  if (!port) return undefined;
  const isAny = !host || host === '0.0.0.0' || host === '::';
  return `http://${isAny ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}/metrics`;
}

/** The samples of a metric in Prometheus text format. */
function samplesOf(page: string, name: string): { labels: string; value: number }[] {
  const lines = page.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'));
  return [...lines].map(([, labels = '', value]) => ({ labels, value: Number(value) }));
}

/** A nestjs-cluster metric, summed over all labels; `undefined` if it is missing. */
function sumOf(page: string, name: string): number | undefined {
  const samples = samplesOf(page, `nestjs_cluster_${name}`);
  return samples.length === 0 ? undefined : sum(samples.map(({ value }) => value));
}

function latencyIn(page: string): Buckets {
  const buckets = new Map<number, number>();
  for (const { labels, value } of samplesOf(page, 'http_request_duration_seconds_bucket')) {
    // In an idle cluster, most requests are for the metrics.
    if (labels.includes('route="/metrics"')) continue;
    const bound = Number(/\ble="([^"]*)"/.exec(labels)?.[1]!.replace('+Inf', 'Infinity'));
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  return buckets;
}

/** A quantile in seconds, like `histogram_quantile` in Prometheus: linear within a bucket. NaN if the counts are 0. */
function quantile(buckets: readonly (readonly [bound: number, count: number])[], share: number) {
  const sorted = buckets.toSorted(([a], [b]) => a - b);
  const rank = share * (sorted.at(-1)?.[1] ?? 0);
  let [lower, below] = [0, 0];
  for (const [bound, count] of sorted) {
    if (count >= rank && count > 0) {
      if (bound === Infinity) return lower;
      return lower + (bound - lower) * ((rank - below) / (count - below));
    }
    [lower, below] = [bound, count];
  }
  return NaN;
}
