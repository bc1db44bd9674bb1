import { setTimeout as delay } from 'node:timers/promises';
import { reasonOf, sumOf } from '../endpoints.js';
import { ToolError } from '../output.js';

/** How long to wait for an answer. A blocked worker does not answer; the caller asks again. */
const TIMEOUT_MS = 5_000;

/** Longer than the default `readyTimeoutMs`, so that a failing app can first report the reason. */
const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 100;

/** The used part of `/health`. */
export interface ClusterHealth {
  readonly balancing: string;
  readonly desired: number;
  readonly ready: number;
  readonly workers: readonly {
    readonly residentMemoryBytes?: number | null;
    readonly eventLoopUtilization?: number | null;
  }[];
  /** The number of threads in the worker that answered. */
  readonly threads: number | undefined;
}

/** The used part of `/metrics`. */
export interface ClusterCounters {
  readonly cpuSeconds: number;
  /** The number of calls of `@CpuBound()` methods that have ended. */
  readonly offloaded: number;
}

/** The endpoints of the running app. */
export class ClusterEndpoints {
  constructor(
    private readonly healthUrl: string,
    private readonly metricsUrl: string,
    private readonly over: AbortSignal,
  ) {}

  /** @throws Error if nothing answers, ToolError if the answer does not show a cluster. */
  async health(): Promise<ClusterHealth> {
    const response = await this.#ask(this.healthUrl);
    // A 503 is accepted too: other health checks of the app do not matter here.
    const body = (await response.json().catch(() => ({}))) as {
      details?: { cluster?: Omit<ClusterHealth, 'threads'>; offload?: { threads?: number } };
    };
    const { cluster, offload } = body.details ?? {};
    if (!Array.isArray(cluster?.workers)) {
      throw new ToolError(
        `${this.healthUrl} answers ${response.status}, and does not show a cluster. The app has to use ClusterModule.forRoot() with health.details; --health-path says where it is`,
      );
    }
    return { ...cluster, threads: offload?.threads };
  }

  /** Resolves once all workers are ready. @throws ToolError */
  async ready(workers: number): Promise<ClusterHealth> {
    const deadline = performance.now() + READY_TIMEOUT_MS;
    let why = '';
    while (performance.now() < deadline) {
      try {
        const health = await this.health();
        refuseOtherWorkers(health, workers);
        if (health.ready >= workers) return health;
        why = `${health.ready} of ${workers} workers are ready`;
      } catch (error) {
        this.over.throwIfAborted();
        if (error instanceof ToolError) throw error;
        why = reasonOf(error);
      }
      await delay(POLL_MS, undefined, { signal: this.over });
    }
    throw new ToolError(
      `${this.healthUrl}: not ready within ${READY_TIMEOUT_MS / 1_000} s: ${why}. If the app listens elsewhere, give its address in --url`,
      69,
    );
  }

  /** @returns `undefined` if the app shows no metrics of its cluster. */
  async counters(): Promise<ClusterCounters | undefined> {
    let page = '';
    try {
      page = await (await this.#ask(this.metricsUrl)).text();
    } catch {
      this.over.throwIfAborted();
    }
    const cpuOfWorkers = sumOf(page, 'nestjs_cluster_worker_cpu_seconds_total');
    if (cpuOfWorkers === undefined) return undefined;
    return {
      cpuSeconds: cpuOfWorkers + (sumOf(page, 'nestjs_cluster_primary_cpu_seconds_total') ?? 0),
      offloaded: sumOf(page, 'nestjs_cluster_offload_tasks_total') ?? 0,
    };
  }

  /** Uses a new connection. The app would rebalance a kept one, which would also outlive the app. */
  #ask(url: string): Promise<Response> {
    return fetch(url, {
      headers: { connection: 'close' },
      signal: AbortSignal.any([this.over, AbortSignal.timeout(TIMEOUT_MS)]),
    });
  }
}

function refuseOtherWorkers({ balancing, desired }: ClusterHealth, workers: number): void {
  if (balancing === 'none') {
    throw new ToolError(
      'the app runs as one process; start it by bootstrap() of nestjs-cluster',
      64,
    );
  }
  if (desired !== workers) {
    throw new ToolError(
      `the app was started with CLUSTER_WORKERS=${workers} and runs ${desired} workers; let it take their number from the environment`,
      64,
    );
  }
}
