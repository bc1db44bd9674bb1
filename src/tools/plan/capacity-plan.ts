import { MEMORY_OF_PRIMARY_BYTES, MEMORY_PER_WORKER_BYTES } from '../../contract/options/index.js';

const MS_PER_SECOND = 1_000;
const BYTES_PER_MB = 1e6;

/** The cost of passing a call to a thread and back, for the event loop: docs/cpu-bound-methods.md. */
const OFFLOADED_CALL_MS = 0.05;

/** A thread that has loaded Nest: docs/cpu-bound-methods.md. */
const THREAD_MB = 40;

/** Additional pods during a rollout: `maxSurge`. */
const PODS_MORE = 1;

/** Additional workers of each pod for a moment, in a reload, a recycling or at a soft limit. */
const WORKERS_MORE = 1;

/** The load of an app. */
export interface Load {
  /** Requests a second, in all. */
  readonly rps: number;
  /** CPU time of a request, as `tune` measures it, without its offloaded call. */
  readonly cpuMs: number;
  /** The time that a request waits for other systems, such as the database, without CPU. */
  readonly waitMs: number;
  /** CPU time of an offloaded call. */
  readonly offloadMs: number;
  /** Share of the requests that make one. */
  readonly offloadShare: number;
}

/** The resources of an app. */
export interface Room {
  readonly coresPerPod: number;
  readonly memoryPerWorkerMb: number;
  /** Connections to the database that a worker opens. */
  readonly poolSize: number;
  /** Share of the cores that the load may take. */
  readonly utilization: number;
}

export const DEFAULTS: Omit<Load & Room, 'rps'> = {
  // A light route of the sample app: docs/benchmarks.md.
  cpuMs: 0.04,
  waitMs: 0,
  offloadMs: 0,
  offloadShare: 1,
  coresPerPod: 2,
  // The memory that `workers: 'auto'` assumes for a worker.
  memoryPerWorkerMb: Math.ceil(MEMORY_PER_WORKER_BYTES / BYTES_PER_MB),
  // The default of pg.
  poolSize: 10,
  utilization: 0.7,
};

/** Figures of each pod, unless they say otherwise. */
export interface CapacityPlan {
  readonly pods: number;
  readonly workers: number;
  /** The threads of each worker. */
  readonly threads: number;
  readonly memoryMb: number;
  /** Database connections of all pods, with one more pod in a rollout and one more worker in each pod. */
  readonly databaseConnections: number;
  /** Cores that all pods keep busy. */
  readonly busyCores: number;
  /** Share of the time that an event loop is busy. */
  readonly eventLoopUtilization: number;
  /** Share of the time that a thread is busy. */
  readonly threadUtilization: number;
  /** From a request's arrival to its answer, on average. */
  readonly responseMs: number;
  /** The part of the response time that is spent waiting for the event loop and for a thread. */
  readonly queueMs: number;
  /** Requests that have begun and are not yet answered, in all pods. */
  readonly inFlight: number;
  /** Requests of a worker that wait for others, each with a connection if it is the database. */
  readonly waitingPerWorker: number;
  /** The load at which cores, event loops or threads are full. */
  readonly limitRps: number;
}

/**
 * Computes what an app needs for a load. Each worker is a queue with one server, its event loop,
 * since a connection stays with its worker; its threads are a queue of their own. Requests arrive
 * at random, as the requests of many clients do.
 */
export function planCapacity(load: Load, room: Room): CapacityPlan {
  const { rps, waitMs, offloadMs } = load;
  const { coresPerPod, utilization } = room;
  const offloadShare = offloadMs > 0 ? load.offloadShare : 0;
  const loopMs = load.cpuMs + offloadShare * OFFLOADED_CALL_MS;
  const loopCores = (rps * loopMs) / MS_PER_SECOND;
  const threadCores = (rps * offloadShare * offloadMs) / MS_PER_SECOND;
  const busyCores = loopCores + threadCores;

  const pods = atLeastOne(busyCores / utilization / coresPerPod);
  const workers = atLeastOne(loopCores / utilization / pods);
  const allWorkers = pods * workers;
  const threads = threadCores === 0 ? 0 : atLeastOne(threadCores / utilization / allWorkers);

  const eventLoopUtilization = loopCores / allWorkers;
  const threadUtilization = threads === 0 ? 0 : threadCores / (allWorkers * threads);
  const queueMs =
    meanWaitMs(loopMs, 1, eventLoopUtilization) +
    offloadShare * meanWaitMs(offloadMs, threads, threadUtilization);
  const responseMs = loopMs + waitMs + offloadShare * offloadMs + queueMs;

  return {
    pods,
    workers,
    threads,
    memoryMb:
      Math.ceil(MEMORY_OF_PRIMARY_BYTES / BYTES_PER_MB) +
      workers * (room.memoryPerWorkerMb + threads * THREAD_MB),
    databaseConnections: room.poolSize * (workers + WORKERS_MORE) * (pods + PODS_MORE),
    busyCores,
    eventLoopUtilization,
    threadUtilization,
    responseMs,
    queueMs,
    // Little's law
    inFlight: (rps * responseMs) / MS_PER_SECOND,
    waitingPerWorker: (rps * waitMs) / MS_PER_SECOND / allWorkers,
    limitRps:
      rps / Math.max(busyCores / (pods * coresPerPod), eventLoopUtilization, threadUtilization),
  };
}

/** How long a request waits on average for one of some servers (Erlang C). */
export function meanWaitMs(serviceMs: number, servers: number, utilization: number): number {
  if (servers === 0 || utilization === 0) return 0;
  const offered = servers * utilization;
  // Erlang B, server by server
  let blocked = 1;
  for (let n = 1; n <= servers; n += 1) blocked = (offered * blocked) / (n + offered * blocked);
  const waits = blocked / (1 - utilization * (1 - blocked));
  return (waits * serviceMs) / (servers * (1 - utilization));
}

function atLeastOne(amount: number): number {
  // 2.0000000000000004 is 2.
  return Math.max(1, Math.ceil(amount - 1e-9));
}
