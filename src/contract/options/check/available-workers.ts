import { availableParallelism } from 'node:os';
import { type CgroupLimits, readCgroupLimits } from './cgroup.js';

const MIB = 1024 * 1024;

/** A Nest app needs about 100 MB of RSS before it holds anything of its own. */
export const MEMORY_PER_WORKER_BYTES = 128 * MIB;
/** The memory of the primary, rounded up. */
export const MEMORY_OF_PRIMARY_BYTES = 64 * MIB;

/**
 * The meaning of `workers: 'auto'`: the cores this process may use by CPU affinity and cgroup quota
 * (rounded down: a part of a core cannot keep a worker busy), no more than the cgroup's memory
 * limit has room for, and at least 1.
 */
export function availableWorkers(
  limits: CgroupLimits = readCgroupLimits(),
  affine: number = availableParallelism(),
): number {
  const cores = availableCores(limits, affine);
  const byMemory =
    limits.memoryBytes === undefined
      ? cores
      : Math.floor((limits.memoryBytes - MEMORY_OF_PRIMARY_BYTES) / MEMORY_PER_WORKER_BYTES);
  return Math.max(1, Math.min(cores, byMemory));
}

/** Cores this process may keep busy: by CPU affinity and cgroup quota, rounded down, at least 1. */
export function availableCores(
  limits: Pick<CgroupLimits, 'cpus'> = readCgroupLimits(),
  // sched_getaffinity(2) on every supported Node
  affine: number = availableParallelism(),
): number {
  return Math.max(1, Math.min(affine, Math.floor(limits.cpus ?? affine)));
}
