import { availableParallelism } from 'node:os';
import { type CgroupLimits, readCgroupLimits } from './cgroup.js';

const MIB = 1024 * 1024;

/** Memory that is planned for each worker. A small app needs it after some requests. */
const MEMORY_PER_WORKER_BYTES = 160 * MIB;
/** The memory of the primary, rounded up. */
export const MEMORY_OF_PRIMARY_BYTES = 64 * MIB;

/**
 * The number of workers for `workers: 'auto'`: the number of cores that this process may use. If
 * the cgroup's memory limit has room for fewer workers, and the one more of a reload, it is that lower
 * number. At least 1.
 */
export function availableWorkers(
  limits: CgroupLimits = readCgroupLimits(),
  affine: number = availableParallelism(),
): number {
  const cores = availableCores(limits, affine);
  const byMemory =
    limits.memoryBytes === undefined
      ? cores
      : Math.floor((limits.memoryBytes - MEMORY_OF_PRIMARY_BYTES) / MEMORY_PER_WORKER_BYTES) - 1;
  return Math.max(1, Math.min(cores, byMemory));
}

/**
 * The number of cores that this process may use by CPU affinity and cgroup quota, at least 1. A
 * quota is rounded down, because a part of a core cannot keep a worker busy.
 */
export function availableCores(
  limits: Pick<CgroupLimits, 'cpus'> = readCgroupLimits(),
  // availableParallelism() calls sched_getaffinity(2) on every supported Node
  affine: number = availableParallelism(),
): number {
  return Math.max(1, Math.min(affine, Math.floor(limits.cpus ?? affine)));
}
