import { setTimeout as delay } from 'node:timers/promises';
import {
  ClusterConfigurationError,
  ClusterUnreachableError,
} from '../../../contract/errors/index.js';
import type { AppProcess } from '../../app/app-process.js';
import type { ClusterEndpoints, ClusterHealth } from './cluster-endpoints.js';

const MS_PER_SECOND = 1_000;

/** Longer than the default `readyTimeoutMs`, so that a failing app can first report the reason. */
const READY_TIMEOUT_MS = 60_000;
const POLL_MS = 100;
/** The health is read after this share of the load, with the warm-up included. */
const ASK_AT_RATIO = 0.8;

/**
 * Reads the health of the cluster late in the load. Its numbers cover the last heartbeat interval
 * (a second by default), which has to be under load.
 */
export async function healthUnderLoad(
  endpoints: ClusterEndpoints,
  seconds: number,
  over: AbortSignal,
): Promise<ClusterHealth | undefined> {
  await delay(seconds * ASK_AT_RATIO * MS_PER_SECOND, undefined, { signal: over });
  const answer = await endpoints.health(over);
  return answer.kind === 'cluster' ? answer.health : undefined;
}

/** Resolves once all workers are ready. */
export async function clusterReady(
  endpoints: ClusterEndpoints,
  workers: number,
  app: AppProcess,
  over: AbortSignal,
): Promise<ClusterHealth> {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const answer = await endpoints.health(over);
    if (answer.kind === 'cluster') {
      refuseOtherWorkers(answer.health, workers);
      if (answer.health.ready >= workers) return answer.health;
    }
    if (answer.kind === 'stranger') {
      throw new ClusterUnreachableError(
        endpoints.healthUrl,
        `the answer there (status ${answer.status}) does not show a cluster. The app has to use ClusterModule.forRoot(), whose health endpoint has to show details (health.details); --health-path says where it is`,
      );
    }
    if (answer.kind === 'silent') refuseOtherAddress(endpoints.healthUrl, app.listensOn);
    if (performance.now() > deadline) {
      const why =
        answer.kind === 'silent' ? answer.why : `${answer.health.ready} of ${workers} are ready`;
      throw new ClusterUnreachableError(
        endpoints.healthUrl,
        `not ready within ${READY_TIMEOUT_MS / MS_PER_SECOND} s: ${why}. If the app listens elsewhere, give its address in --url${app.lastLines}`,
      );
    }
    await delay(POLL_MS, undefined, { signal: over });
  }
}

function refuseOtherAddress(healthUrl: string, listensOn: string | undefined): void {
  if (listensOn === undefined || !URL.canParse(listensOn)) return;
  if (new URL(listensOn).port === new URL(healthUrl).port) return;
  throw new ClusterUnreachableError(
    healthUrl,
    `the app says that it listens on ${listensOn}; give the route there in --url`,
  );
}

function refuseOtherWorkers({ balancing, desired }: ClusterHealth, workers: number): void {
  if (balancing === 'none') {
    throw new ClusterConfigurationError(
      `the app runs as one process, whatever CLUSTER_WORKERS says; start it by bootstrap()`,
    );
  }
  if (desired !== workers) {
    throw new ClusterConfigurationError(
      `the app was started with CLUSTER_WORKERS=${workers} and runs ${desired} workers; let it take their number from the environment (the command may set CLUSTER_WORKERS itself, or the app call scale())`,
    );
  }
}
