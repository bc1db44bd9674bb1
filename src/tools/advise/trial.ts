import type { ClusterStatus } from '../../control/cluster-status.js';
import { ClusterRefusedError } from '../../contract/errors/index.js';
import type {
  AppMethod,
  MethodProfile,
  RestartResult,
  WorkerMetrics,
} from '../../contract/snapshot/index.js';
import type { ControlClient } from '../control/control-client.js';
import { collect, type Collected, NO_MODULE } from './collect.js';
import { waitP99 } from './report.js';
import { type Requests, requestsBetween, requestsOf } from './requests.js';

/** A trial: what workers did without the method in a thread and with it, at the same time. */
export interface Trial {
  readonly method: string;
  /** The slot of the worker that had the method in a thread. */
  readonly slot: number;
  readonly seconds: number;
  /** The mean of the other workers. */
  readonly without: Side;
  readonly with: Side;
}

export interface Side {
  readonly workers: number;
  /** Share of the time in which the event loop was busy, 0 to 1. */
  readonly busy: number;
  /** p99 of the time that a request waits for the event loop. */
  readonly waitP99Ms: number;
  /** p99 of the requests that the method answers; `null` if it answers no route, or none came. */
  readonly ownP99Ms: number | null;
  readonly requestsPerSecond: number;
  /** Share of the requests that were answered with 500 or above. */
  readonly errors: number;
}

/** A new worker compiles its code in this time, so it does not count. */
const WARM_UP_MS = 5_000;

/** The worker goes on for this time after the trial, if nobody replaces it before. */
const SPARE_S = 30;

const SAMPLE_MS = 1_000;

type Client = Pick<ControlClient, 'get' | 'post'>;

/** Waits for so many ms, and throws when the command is interrupted. */
type Wait = (ms: number) => Promise<unknown>;

/**
 * Has one worker run a method in a thread, compares it with the other workers, and replaces it by
 * one without the trial, also after a failure.
 *
 * @throws ClusterUnreachableError, ClusterRefusedError if the method cannot be tried, or its worker
 *   ends before the time is over.
 */
export async function tryInThread(
  client: Client,
  method: string,
  seconds: number,
  wait: Wait,
): Promise<Trial> {
  const { cluster } = await client.get<ClusterStatus>('/v1/status');
  const serving = cluster.workers.filter(({ state }) => state === 'ready');
  const slot = serving.at(-1)?.slot ?? 0;
  const { route } = await tried(client, slot, method);
  if (serving.every((each) => each.slot === slot)) {
    throw new ClusterRefusedError('a trial compares workers, and 1 serves: scale to 2 or more');
  }
  const path = `/v1/workers/${slot}`;
  const wanted = { method, seconds: WARM_UP_MS / 1_000 + seconds + SPARE_S };
  const begun = await client.post<RestartResult>(`${path}/trial`, wanted);
  if (begun.reason !== null) {
    throw new ClusterRefusedError(`${method} cannot be tried: ${begun.reason}`);
  }
  try {
    await wait(WARM_UP_MS);
    return { method, slot, seconds, ...(await compared(client, slot, route, seconds, wait)) };
  } finally {
    // If the trial is over, its worker has been replaced.
    if (await isOn(client, slot)) await client.post(`${path}/restart`);
  }
}

/** @throws ClusterRefusedError if the app has no such method, or `@CpuBound()` cannot work on it. */
async function tried(client: Client, slot: number, name: string): Promise<AppMethod> {
  const path = `/v1/workers/${slot}/method-profile?seconds=1`;
  const { list } = await client.post<MethodProfile>(path);
  if (list === null) throw new ClusterRefusedError(NO_MODULE);
  const method = list.methods.find((each) => each.name === name);
  if (method === undefined) {
    const same = list.methods.filter((each) => each.name.split('.')[1] === name.split('.').at(-1));
    const hint = same.length > 0 ? same.map((each) => each.name).join(' or ') : 'Class.method';
    throw new ClusterRefusedError(
      `no controller or provider has the method ${name}; expected ${hint}`,
    );
  }
  if (method.cpuBound) throw new ClusterRefusedError(`${name} has @CpuBound() already`);
  if (method.refusal !== null) throw new ClusterRefusedError(method.refusal);
  return method;
}

async function compared(
  client: Client,
  slot: number,
  route: string | null,
  seconds: number,
  wait: Wait,
): Promise<Pick<Trial, 'without' | 'with'>> {
  const first = await workersOf(client, slot);
  const others = first.filter((each) => each.slot !== slot).map((each) => each.slot);
  const before = await measured(client, first);
  const profile = (over: AbortSignal) =>
    Promise.all([others, [slot]].map((slots) => collect(client, seconds, slots, over)));
  const [without, tried] = await untilTrialEnds(client, slot, wait, profile);
  const after = await measured(client, first);
  const last = await workersOf(client, slot);
  // A worker that was replaced in the meantime counts its requests from 0, so these are left out.
  const isWhole = ({ pid }: Worker) => last.some((each) => each.pid === pid);
  const sideOf = ({ work, pids }: Collected, slots: readonly number[]): Side => {
    const whole = first.filter((each) => slots.includes(each.slot) && isWhole(each));
    const readings = whole.map((each) => [before.get(each.slot)!, after.get(each.slot)!] as const);
    const { ownP99Ms, count, errors } = requestsBetween(readings, route);
    return {
      workers: pids.length,
      busy: work.ms === 0 ? 0 : work.busyMs / work.ms,
      waitP99Ms: waitP99(work, []),
      ownP99Ms,
      requestsPerSecond: count / seconds / Math.max(1, whole.length),
      errors,
    };
  };
  return { without: sideOf(without!, others), with: sideOf(tried!, [slot]) };
}

/** @throws if the trial ends before `task`, or the command is interrupted. Then it aborts `task`. */
async function untilTrialEnds<T>(
  client: Client,
  slot: number,
  wait: Wait,
  task: (over: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const result = task(over.signal);
  const watch = async (): Promise<T> => {
    while (!over.signal.aborted) {
      await wait(SAMPLE_MS);
      await workersOf(client, slot);
    }
    return result;
  };
  try {
    return await Promise.race([result, watch()]);
  } finally {
    over.abort();
  }
}

type Worker = ClusterStatus['cluster']['workers'][number];

/** The ready workers. @throws ClusterRefusedError if the worker of the trial is not among them. */
async function workersOf(client: Client, slot: number): Promise<readonly Worker[]> {
  const { cluster } = await client.get<ClusterStatus>('/v1/status');
  const isTrial = (each: Worker) => each.slot === slot && each.trial !== undefined;
  if (!cluster.workers.some((each) => isTrial(each) && each.state === 'ready')) {
    throw new ClusterRefusedError(
      `the worker of the trial has ended or was replaced, so there is nothing to compare: \`nestjs-cluster events\` and the log of the cluster say why`,
    );
  }
  return cluster.workers.filter(
    (each) => each.state === 'ready' && (each.slot !== slot || isTrial(each)),
  );
}

async function isOn(client: Client, slot: number): Promise<boolean> {
  const { cluster } = await client.get<ClusterStatus>('/v1/status');
  return cluster.workers.some((each) => each.slot === slot && each.trial !== undefined);
}

async function measured(
  client: Client,
  workers: readonly Worker[],
): Promise<ReadonlyMap<number, Requests>> {
  const all = new Map<number, Requests>();
  for (const { slot } of workers) {
    const { body } = await client.get<WorkerMetrics>(`/v1/workers/${slot}/metrics`);
    all.set(slot, requestsOf(body));
  }
  return all;
}
