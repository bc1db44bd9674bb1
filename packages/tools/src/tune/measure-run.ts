import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterSnapshot } from 'nestjs-cluster/bootstrap';
import { AppProcess } from '../app/app-process.js';
import { ToolError } from '../output.js';
import { sum } from '../sum.js';
import { type Autocannon, type Load, load, type LoadReport } from './load.js';

/** How long to wait for an answer. A blocked worker does not answer, so the caller retries. */
const TIMEOUT_MS = 5_000;

/** Longer than the default `readyTimeoutMs`, so that a failing app reports the reason first. */
const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 100;

/** The part of `/health` that is used here. */
type ClusterHealth = Pick<ClusterSnapshot, 'desired' | 'ready' | 'workers'>;

/** The app to measure, and the load. */
export interface Plan {
  readonly autocannon: Autocannon;
  readonly command: readonly string[];
  readonly healthUrl: string;
  readonly load: Load;
}

export interface Run extends LoadReport {
  readonly workers: number;
  /** The memory of all workers. */
  readonly memoryBytes: number;
  /** The event loop utilization of the busiest worker, 0..1. */
  readonly eventLoopUtilization: number;
}

/**
 * Starts the app with this number of workers, puts load on it, and ends it.
 *
 * @throws ToolError if the app cannot be measured.
 */
export async function measureRun(
  plan: Plan,
  workers: number,
  interrupted: AbortSignal,
): Promise<Run> {
  await refuseTakenAddress(plan.load.url);
  const app = new AppProcess(plan.command, { CLUSTER_WORKERS: String(workers) });
  try {
    return await measure(plan, workers, AbortSignal.any([interrupted, app.ended]));
  } catch (error) {
    interrupted.throwIfAborted();
    // If the app has exited, its exit is the cause of any other error.
    throw app.ended.aborted ? app.failure : error;
  } finally {
    await app.end();
  }
}

async function measure(plan: Plan, workers: number, over: AbortSignal): Promise<Run> {
  const { autocannon, healthUrl } = plan;
  await waitForWorkers(healthUrl, workers, over);
  const report = await load(autocannon, plan.load, over);
  if (report.requestsPerSecond === 0) {
    throw new ToolError(
      `GET ${plan.load.url} never answered 2xx or 3xx; choose another route, add a missing --header, or use fewer --connections`,
    );
  }
  // Values of the last heartbeat interval (1 s), which was under load.
  const { workers: each } = await healthOf(healthUrl, over);
  return {
    ...report,
    workers,
    memoryBytes: sum(each.map(({ residentMemoryBytes }) => residentMemoryBytes ?? 0)),
    eventLoopUtilization: Math.max(...each.map((worker) => worker.eventLoopUtilization ?? 0)),
  };
}

/** @throws ToolError if another program already answers at the URL: it would be measured instead. */
async function refuseTakenAddress(url: string): Promise<void> {
  const isTaken = await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(1_000) }).then(
    () => true,
    ({ name }: Error) => name === 'TimeoutError',
  );
  if (!isTaken) return;
  throw new ToolError(
    `another program already answers at ${url}; stop it, or use another port for the app and --url`,
    69,
  );
}

/** @throws ToolError if the answer is not from a cluster; the error of `fetch` if there is none. */
async function healthOf(url: string, over: AbortSignal): Promise<ClusterHealth> {
  const response = await fetch(url, {
    // The app would rebalance a keep-alive connection, and the connection would outlive the app.
    headers: { connection: 'close' },
    signal: AbortSignal.any([over, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  // A 503 is accepted, because the app's other health checks do not matter here.
  const body = (await response.json().catch(() => ({}))) as {
    readonly details?: { readonly cluster?: ClusterHealth };
  };
  const cluster = body.details?.cluster;
  if (cluster !== undefined) return cluster;
  throw new ToolError(
    `${url} does not report a cluster (status ${response.status}). The app needs ClusterModule.forRoot() with health.details; --health-path sets another path`,
  );
}

/** Resolves once all workers are ready. @throws ToolError */
async function waitForWorkers(url: string, workers: number, over: AbortSignal): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const health = await healthOf(url, over).catch((error: Error) => {
      if (over.aborted || error instanceof ToolError) throw error;
      return undefined; // the app does not listen yet
    });
    if (health !== undefined && health.desired !== workers) {
      throw new ToolError(
        `the app was started with CLUSTER_WORKERS=${workers} but runs ${health.desired} workers; start it with bootstrap() from nestjs-cluster, and set CLUSTER_WORKERS nowhere else`,
        64,
      );
    }
    if (health !== undefined && health.ready >= workers) return;
    await delay(POLL_MS, undefined, { signal: over });
  }
  throw new ToolError(
    `${url} did not report ${workers} ready workers within ${READY_TIMEOUT_MS / 1_000} s. If the app listens elsewhere, pass its address with --url`,
    69,
  );
}
