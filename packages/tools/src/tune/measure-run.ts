import { AppProcess } from '../app/app-process.js';
import { ToolError } from '../output.js';
import { sum } from '../sum.js';
import { healthOf, waitForWorkers } from './cluster-health.js';
import { type Autocannon, type Load, load, type LoadReport } from './load.js';

/** The app to measure, and the load. */
export interface Plan {
  readonly autocannon: Autocannon;
  readonly command: readonly string[];
  readonly healthUrl: string;
  readonly load: Load;
}

/** One run of the app under load. */
export interface Run extends LoadReport {
  readonly workers: number;
  /** The memory of all workers. */
  readonly memoryBytes: number;
  /** The share of the time in which the busiest worker's event loop was busy. */
  readonly eventLoopUtilization: number;
}

/**
 * Starts the app with this number of workers, loads it and ends it.
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
    // If the app has ended, its end is the cause of all other errors.
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
      `GET ${plan.load.url} did not answer 2xx or 3xx once: give a route that does (--header adds what it asks for), or fewer --connections`,
    );
  }
  // The figures of the last heartbeat interval, a second, which was under load.
  const { workers: each } = await healthOf(healthUrl, over);
  return {
    ...report,
    workers,
    memoryBytes: sum(each.map(({ residentMemoryBytes }) => residentMemoryBytes ?? 0)),
    eventLoopUtilization: Math.max(...each.map((worker) => worker.eventLoopUtilization ?? 0)),
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
