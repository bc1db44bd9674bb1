import * as v from 'valibot';
import { reasonOf, sumOf } from '../../app/endpoints.js';

/** How long to wait for an answer. A blocked worker does not answer; the caller asks again. */
const TIMEOUT_MS = 5_000;

const CPU_OF_WORKERS = 'nestjs_cluster_worker_cpu_seconds_total';
const CPU_OF_PRIMARY = 'nestjs_cluster_primary_cpu_seconds_total';
const MEMORY_OF_PRIMARY = 'nestjs_cluster_primary_resident_memory_bytes';
const OFFLOADED = 'nestjs_cluster_offload_tasks_total';

/** The used part of `/health`. */
const healthSchema = v.object({
  details: v.object({
    cluster: v.object({
      balancing: v.string(),
      desired: v.number(),
      ready: v.number(),
      workers: v.array(
        v.object({
          residentMemoryBytes: v.optional(v.nullable(v.number())),
          eventLoopUtilization: v.optional(v.nullable(v.number())),
        }),
      ),
    }),
    offload: v.optional(v.object({ threads: v.optional(v.number()) })),
  }),
});

export interface ClusterHealth {
  readonly balancing: string;
  readonly desired: number;
  readonly ready: number;
  /** The resident memory of each worker that reports it. */
  readonly residentMemoryBytes: readonly number[];
  /** The event loop utilization of the busiest worker, over its last heartbeat interval. */
  readonly eventLoopUtilization: number | undefined;
  /** The number of threads in the worker that answered. */
  readonly threads: number | undefined;
}

/** The used part of `/metrics`. */
export interface ClusterCounters {
  readonly cpuSeconds: number;
  readonly primaryMemoryBytes: number;
  /** The number of calls of `@CpuBound()` methods that have ended. */
  readonly offloaded: number;
}

/** The answer of the health endpoint: a cluster, something else, or no answer and the reason. */
export type HealthAnswer =
  | { readonly kind: 'cluster'; readonly health: ClusterHealth }
  | { readonly kind: 'stranger'; readonly status: number }
  | { readonly kind: 'silent'; readonly why: string };

/** The endpoints of the running app. */
export class ClusterEndpoints {
  constructor(
    readonly healthUrl: string,
    readonly metricsUrl: string,
  ) {}

  async health(signal: AbortSignal): Promise<HealthAnswer> {
    let response: Response;
    let body: unknown;
    try {
      response = await ask(this.healthUrl, signal);
      body = await response.json().catch(() => undefined);
    } catch (error) {
      signal.throwIfAborted();
      return { kind: 'silent', why: reasonOf(error) };
    }
    // A 503 is accepted too: other health checks of the app do not matter here.
    const health = v.safeParse(healthSchema, body);
    if (!health.success) return { kind: 'stranger', status: response.status };
    const { cluster, offload } = health.output.details;
    return {
      kind: 'cluster',
      health: {
        ...cluster,
        residentMemoryBytes: cluster.workers
          .map(({ residentMemoryBytes }) => residentMemoryBytes ?? 0)
          .filter((bytes) => bytes > 0),
        eventLoopUtilization: largest(
          cluster.workers.map(({ eventLoopUtilization }) => eventLoopUtilization),
        ),
        threads: offload?.threads,
      },
    };
  }

  /** @returns `undefined` if the app shows no metrics of its cluster. */
  async counters(signal: AbortSignal): Promise<ClusterCounters | undefined> {
    let page: string;
    try {
      const response = await ask(this.metricsUrl, signal);
      page = response.ok ? await response.text() : '';
    } catch {
      signal.throwIfAborted();
      return undefined;
    }
    const cpuOfWorkers = sumOf(page, CPU_OF_WORKERS);
    if (cpuOfWorkers === undefined) return undefined;
    return {
      cpuSeconds: cpuOfWorkers + (sumOf(page, CPU_OF_PRIMARY) ?? 0),
      primaryMemoryBytes: sumOf(page, MEMORY_OF_PRIMARY) ?? 0,
      offloaded: sumOf(page, OFFLOADED) ?? 0,
    };
  }
}

function largest(values: readonly (number | null | undefined)[]): number | undefined {
  const known = values.filter((value) => typeof value === 'number');
  return known.length === 0 ? undefined : Math.max(...known);
}

/** Uses a new connection. The app would rebalance a keep-alive connection, which would also outlive the app. */
function ask(url: string, signal: AbortSignal): Promise<Response> {
  return fetch(url, {
    headers: { connection: 'close' },
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  });
}
