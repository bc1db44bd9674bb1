import { setTimeout as delay } from 'node:timers/promises';
import type { ClusterSnapshot } from 'nestjs-cluster/bootstrap';
import { ToolError } from '../output.js';

/** How long to wait for an answer. A blocked worker does not answer; the caller asks again. */
const TIMEOUT_MS = 5_000;

/** Longer than the default `readyTimeoutMs`, so that a failing app can first report the reason. */
const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 100;

/** The used part of `/health`. */
type ClusterHealth = Pick<ClusterSnapshot, 'desired' | 'ready' | 'workers'>;

/** @throws ToolError if the answer does not show a cluster, and the error of `fetch` if there is none. */
export async function healthOf(url: string, over: AbortSignal): Promise<ClusterHealth> {
  const response = await fetch(url, {
    // The app would rebalance a kept connection, which would also outlive the app.
    headers: { connection: 'close' },
    signal: AbortSignal.any([over, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  // A 503 is read too: other health checks of the app do not matter here.
  const body = (await response.json().catch(() => ({}))) as {
    readonly details?: { readonly cluster?: ClusterHealth };
  };
  const cluster = body.details?.cluster;
  if (cluster !== undefined) return cluster;
  throw new ToolError(
    `${url} answers ${response.status}, and does not show a cluster. The app has to use ClusterModule.forRoot() with health.details; --health-path says where it is`,
  );
}

/** Resolves once all workers are ready. @throws ToolError */
export async function waitForWorkers(
  url: string,
  workers: number,
  over: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const health = await healthOf(url, over).catch((error: Error) => {
      if (over.aborted || error instanceof ToolError) throw error;
      return undefined; // the app does not listen yet
    });
    if (health !== undefined && health.desired !== workers) {
      throw new ToolError(
        `the app was started with CLUSTER_WORKERS=${workers} and runs ${health.desired} workers; start it by bootstrap() of nestjs-cluster, and let nothing else set CLUSTER_WORKERS`,
        64,
      );
    }
    if (health !== undefined && health.ready >= workers) return;
    await delay(POLL_MS, undefined, { signal: over });
  }
  throw new ToolError(
    `${url} did not show ${workers} ready workers within ${READY_TIMEOUT_MS / 1_000} s. If the app listens elsewhere, give its address in --url`,
    69,
  );
}
