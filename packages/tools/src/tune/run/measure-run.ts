import { NotMeasuredError } from '../../../contract/errors/index.js';
import { AppProcess } from '../../app/app-process.js';
import type { Interruption } from '../../app/interruption.js';
import { type ClusterCounters, ClusterEndpoints, type ClusterHealth } from './cluster-endpoints.js';
import { LoadGenerator } from './load-generator.js';
import type { LoadReport } from './load-protocol.js';
import { coresOfOthers, type MachineLoad, watchMachine } from './machine-load.js';
import type { Plan, Run, Setting } from './measurement.js';
import { refuseFailingRoute, refuseTakenAddress } from '../preconditions.js';
import { clusterReady, healthUnderLoad } from './readiness.js';
import { environmentOf } from '../recommendation.js';

const MS_PER_SECOND = 1_000;

/** The minimum warm-up. It takes this long to compile the code and to balance the connections. */
const MIN_WARM_UP_SECONDS = 1;
const WARM_UP_RATIO = 0.25;

/** A route counts as running in threads if it makes this many `@CpuBound()` calls per request. */
const OFFLOADED_RATIO = 0.5;

/**
 * Starts the app with a setting, loads it and ends it.
 *
 * @throws ClusterError if the app cannot be measured.
 */
export async function measureRun(
  plan: Plan,
  setting: Setting,
  { started, signal: interrupted }: Interruption,
): Promise<Run> {
  await refuseTakenAddress(plan.url, interrupted);
  const app = new AppProcess(plan.command, environmentOf(setting));
  started.add(app);
  const load = new LoadGenerator(plan.autocannon);
  started.add(load);
  const over = AbortSignal.any([interrupted, app.ended]);
  try {
    return await measure(plan, setting, { app, load, over });
  } catch (error) {
    interrupted.throwIfAborted();
    // If the app has ended, its end is the cause of all other errors.
    throw app.ended.aborted ? app.failure : error;
  } finally {
    await Promise.all([app.end(), load.end()]);
    started.delete(app);
    started.delete(load);
  }
}

async function measure(
  plan: Plan,
  { workers }: Setting,
  { app, load, over }: { app: AppProcess; load: LoadGenerator; over: AbortSignal },
): Promise<Run> {
  const endpoints = new ClusterEndpoints(plan.healthUrl, plan.metricsUrl);
  await clusterReady(endpoints, workers, app, over);
  await refuseFailingRoute(plan, over);
  await unlessOver(load.loaded(), over);

  const before = await endpoints.counters(over);
  const startedAt = performance.now();
  const machineLoad = watchMachine();
  const { url, headers, connections, seconds } = plan;
  const warmUpSeconds = Math.max(MIN_WARM_UP_SECONDS, seconds * WARM_UP_RATIO);
  const loaded = load.run({
    url,
    headers,
    connections,
    warmUpMs: warmUpSeconds * MS_PER_SECOND,
    measureMs: seconds * MS_PER_SECOND,
  });
  const [report, busy] = await unlessOver(
    Promise.all([loaded, healthUnderLoad(endpoints, warmUpSeconds + seconds, over)]),
    over,
  );
  if (report.answered === 0) throw noAnswers(report, plan);
  const machine = machineLoad();
  const after = await endpoints.counters(over);
  const elapsedSeconds = (performance.now() - startedAt) / MS_PER_SECOND;
  const health = await clusterReady(endpoints, workers, app, over);
  return runOf({
    report,
    before,
    after,
    elapsedSeconds,
    machine,
    health,
    eventLoopUtilization: busy?.eventLoopUtilization,
  });
}

function runOf(measured: {
  report: LoadReport;
  before: ClusterCounters | undefined;
  after: ClusterCounters | undefined;
  elapsedSeconds: number;
  machine: MachineLoad;
  health: ClusterHealth;
  eventLoopUtilization: number | undefined;
}): Run {
  const { report, before, after, elapsedSeconds, machine, health } = measured;
  const memory = health.residentMemoryBytes.reduce((sum, bytes) => sum + bytes, 0);
  const known = before !== undefined && after !== undefined;
  const offloaded =
    known && after.offloaded - before.offloaded >= OFFLOADED_RATIO * report.answeredInAll;
  const busyCores = known ? (after.cpuSeconds - before.cpuSeconds) / elapsedSeconds : undefined;
  return {
    requestsPerSecond: report.requestsPerSecond,
    p50Ms: report.p50Ms,
    p99Ms: report.p99Ms,
    failed: Object.values(report.failures).reduce((sum, count) => sum + count, 0),
    busyCores,
    coresOfOthers:
      busyCores === undefined ? undefined : coresOfOthers(machine, busyCores + report.busyCores),
    memoryBytes: memory + (after?.primaryMemoryBytes ?? 0),
    workerMemoryBytes: memory / Math.max(1, health.residentMemoryBytes.length),
    threads: offloaded ? health.threads : undefined,
    eventLoopUtilization: measured.eventLoopUtilization,
    generatorUtilization: report.utilization,
  };
}

function noAnswers({ failures }: LoadReport, { url, connections, seconds }: Plan): Error {
  const [[what, count] = []] = Object.entries(failures).toSorted(([, a], [, b]) => b - a);
  return new NotMeasuredError(
    what === undefined
      ? `GET ${url} answered nothing within ${seconds} s under ${connections} connections; give more --seconds, or fewer --connections`
      : `GET ${url} failed under ${connections} connections (${what}, ${count} times); give fewer --connections`,
  );
}

/** Rejects when the signal aborts, because the promise may then never settle. */
async function unlessOver<T>(promise: Promise<T>, over: AbortSignal): Promise<T> {
  over.throwIfAborted();
  let stop!: () => void;
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(over.reason as Error);
    over.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    over.removeEventListener('abort', stop);
    promise.catch(() => {}); // nobody waits for it any more
  }
}
