import { AppProcess } from '../app/app-process.js';
import type { Interruption } from '../app/interruption.js';
import { ToolError } from '../output.js';
import { ClusterEndpoints } from './cluster-endpoints.js';
import { load } from './load.js';
import type { Plan, Run, Setting } from './measurement.js';
import { environmentOf } from './recommendation.js';

/** The minimum warm-up. It takes this long to compile the code and to balance the connections. */
const MIN_WARM_UP_MS = 1_000;
const WARM_UP_RATIO = 0.25;

/** A route counts as running in threads if it makes this many `@CpuBound()` calls per request. */
const OFFLOADED_RATIO = 0.5;

/** How long the route may take to answer before the load begins. On a busy machine, threads start slowly. */
const ROUTE_TIMEOUT_MS = 30_000;

/**
 * Starts the app with a setting, loads it and ends it.
 *
 * @throws ToolError if the app cannot be measured.
 */
export async function measureRun(
  plan: Plan,
  setting: Setting,
  { started, signal: interrupted }: Interruption,
): Promise<Run> {
  await refuseTakenAddress(plan.url);
  const app = new AppProcess(plan.command, environmentOf(setting));
  started.add(app);
  const over = AbortSignal.any([interrupted, app.ended]);
  try {
    return await measure(plan, setting, over);
  } catch (error) {
    interrupted.throwIfAborted();
    // If the app has ended, its end is the cause of all other errors.
    throw app.ended.aborted ? app.failure : error;
  } finally {
    await app.end();
    started.delete(app);
  }
}

async function measure(plan: Plan, { workers }: Setting, over: AbortSignal): Promise<Run> {
  const { url, headers, connections, seconds, autocannon } = plan;
  const endpoints = new ClusterEndpoints(plan.healthUrl, plan.metricsUrl, over);
  await endpoints.ready(workers);
  await refuseFailingRoute(plan, over);

  const measureMs = seconds * 1_000;
  const warmUpMs = Math.max(MIN_WARM_UP_MS, measureMs * WARM_UP_RATIO);
  const before = await endpoints.counters();
  const startedAt = performance.now();
  const report = await load(autocannon, { url, headers, connections, warmUpMs, measureMs, over });
  // Its numbers cover the last heartbeat interval, a second, which was under load.
  const health = await endpoints.health();
  const after = await endpoints.counters();
  const elapsedSeconds = (performance.now() - startedAt) / 1_000;
  if (report.requestsPerSecond === 0) {
    throw new ToolError(
      `GET ${url} failed under ${connections} connections; give fewer --connections`,
    );
  }
  const all = report.requestsPerSecond * elapsedSeconds;
  const isOffloaded =
    before !== undefined &&
    after !== undefined &&
    after.offloaded - before.offloaded >= OFFLOADED_RATIO * all;
  const known = health.workers.map((each) => each.eventLoopUtilization ?? 0);
  return {
    ...report,
    busyCores: before && after && (after.cpuSeconds - before.cpuSeconds) / elapsedSeconds,
    memoryBytes: health.workers.reduce((sum, each) => sum + (each.residentMemoryBytes ?? 0), 0),
    threads: isOffloaded ? health.threads : undefined,
    eventLoopUtilization: Math.max(...known),
    generatorUtilization: report.utilization,
  };
}

/** @throws ToolError if something answers there already, because that would be measured. */
async function refuseTakenAddress(url: string): Promise<void> {
  const isTaken = await fetch(url, { method: 'HEAD', signal: AbortSignal.timeout(1_000) }).then(
    () => true,
    ({ name }: Error) => name === 'TimeoutError',
  );
  if (!isTaken) return;
  throw new ToolError(
    `something answers at ${url} before the app is started. Stop it, or start the app on another port and give it in --url`,
    69,
  );
}

/** @throws ToolError if the route does not answer 2xx or 3xx, because a measurement of errors is useless. */
async function refuseFailingRoute({ url, headers }: Plan, over: AbortSignal): Promise<void> {
  const { status } = await fetch(url, {
    headers: { ...headers, connection: 'close' },
    redirect: 'manual',
    signal: AbortSignal.any([over, AbortSignal.timeout(ROUTE_TIMEOUT_MS)]),
  });
  if (status >= 200 && status <= 399) return;
  throw new ToolError(
    `GET ${url} answers ${status}: give a route that answers 2xx or 3xx (--header adds what it asks for)`,
  );
}
