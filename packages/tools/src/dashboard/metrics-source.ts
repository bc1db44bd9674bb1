import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterStatus } from '../cluster.js';
import { sumOf } from '../endpoints.js';
import { bucketsOf, type Buckets, quantile, since } from './histogram.js';

/** Figures from the page of metrics. The control socket does not report the latency. */
export interface Readings {
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
  /** The calls of `@CpuBound()` methods that wait for a thread. */
  readonly queued: number | null;
  /** The calls of `@CpuBound()` methods that ended, per second. */
  readonly offloaded: number | null;
}

/** The URL of the metrics, and whether the last request for them succeeded. */
export interface MetricsState {
  readonly url: string | null;
  /** The reason why the latency is not known. `null` if it is known. */
  readonly problem: string | null;
}

export const NOTHING: Readings = {
  p50Ms: null,
  p95Ms: null,
  p99Ms: null,
  queued: null,
  offloaded: null,
};

const INTERVAL_MS = 5_000;
const ANSWER_MS = 3_000;

const LATENCY = 'http_request_duration_seconds';
const QUEUE = 'nestjs_cluster_offload_queue_size';
const TASKS = 'nestjs_cluster_offload_tasks_total';

const HINT = '--metrics <url> says where the metrics are';

/** Reads the page of metrics every few seconds. */
export class MetricsSource {
  readings: Readings = NOTHING;
  state: MetricsState = { url: null, problem: `unknown where the metrics are; ${HINT}` };
  #before: { readonly at: number; readonly latency: Buckets; readonly tasks: number } | undefined;

  constructor(
    /** Returns the URL of the metrics, or `undefined` while the URL is not known. */
    private readonly url: () => string | undefined,
    private readonly ask: typeof fetch = fetch,
    private readonly now: () => number = () => performance.now(),
  ) {}

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.read();
      await delay(INTERVAL_MS, undefined, { signal }).catch(() => {});
    }
  }

  async read(): Promise<void> {
    const url = this.url();
    if (url === undefined) return this.#failed(null, `unknown where the metrics are; ${HINT}`);
    try {
      const answer = await this.ask(url, {
        redirect: 'error',
        signal: AbortSignal.timeout(ANSWER_MS),
      });
      if (answer.status !== 200) {
        await answer.body?.cancel();
        return this.#failed(url, `${url} answers ${answer.status}; ${HINT}`);
      }
      this.#take(url, await answer.text());
    } catch {
      this.#failed(url, `${url} does not answer; ${HINT}`);
    }
  }

  #take(url: string, page: string): void {
    const at = this.now();
    // Leaves out the requests for metrics. In a quiet cluster they would be most of all requests.
    const latency = bucketsOf(page, LATENCY, new URL(url).pathname);
    if (latency.size === 0) return this.#failed(url, `${url} has no ${LATENCY} (yet)`);
    const tasks = sumOf(page, TASKS);
    const before = this.#before;
    this.#before = { at, latency, tasks: tasks ?? 0 };
    this.state = { url, problem: null };
    const recent = before && since(before.latency, latency);
    const ms = (share: number) => {
      const seconds = recent && quantile(recent, share);
      return seconds === undefined ? null : seconds * 1_000;
    };
    this.readings = {
      p50Ms: ms(0.5),
      p95Ms: ms(0.95),
      p99Ms: ms(0.99),
      queued: sumOf(page, QUEUE) ?? null,
      offloaded:
        before === undefined || tasks === undefined
          ? null
          : Math.max(0, tasks - before.tasks) / ((at - before.at) / 1_000),
    };
  }

  #failed(url: string | null, problem: string): void {
    this.readings = NOTHING;
    this.state = { url, problem };
    this.#before = undefined;
  }
}

/** The default URL of the metrics: on the admin listener, or else on the app's own port. */
export function metricsUrlOf({ admin, ...options }: ClusterStatus['options']): string | undefined {
  const at = admin ?? options;
  // With port 0 the system chooses the port, and the options do not say which.
  if (typeof at.port !== 'number' || at.port === 0) return undefined;
  return `http://${reachable(at.host ?? null)}:${at.port}/metrics`;
}

function reachable(host: string | null): string {
  if (host === null || host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
