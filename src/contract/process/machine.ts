import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { posix } from 'node:path';

/** Reads a file of /proc or /sys as text; `undefined` if there is none. */
export type FileReader = (path: string) => string | undefined;

/** The limits of the control groups of this process. `Infinity` = no limit. */
export interface CgroupLimits {
  /** CPU quota in cores; may be fractional. */
  cpus: number;
  memoryBytes: number;
}

const ROOT = '/sys/fs/cgroup';

/** cgroup v1 writes "no limit" as the largest multiple of the page size below 2^63. */
const V1_UNLIMITED_BYTES = 2 ** 62;

/**
 * Reads the limits of cgroup v2 and v1. Node also reports the CPU limit, but only from 22.12 (libuv
 * 1.49). For a quota below one core, Node reports the host's core count
 * (https://github.com/nodejs/node/issues/59200).
 */
export function readCgroupLimits(read: FileReader = readTextFile): CgroupLimits {
  const cpus = [
    ...groupFiles(read, '', 'cpu.max').map((file) => parseQuota(read(file))),
    ...groupFiles(read, 'cpu', 'cpu.cfs_quota_us').map((file) =>
      parseQuota(`${read(file)} ${read(file.replace('cfs_quota', 'cfs_period'))}`),
    ),
  ];
  const memory = [
    ...groupFiles(read, '', 'memory.max'),
    ...groupFiles(read, 'memory', 'memory.limit_in_bytes'),
  ].map((file) => parseBytes(read(file)));
  return { cpus: Math.min(...cpus), memoryBytes: Math.min(...memory) };
}

/** The number of OOM kills in this control group; `undefined` if unknown. */
export function readOomKills(read: FileReader = readTextFile): number | undefined {
  const files = [
    ...groupFiles(read, '', 'memory.events'),
    ...groupFiles(read, 'memory', 'memory.oom_control'),
  ];
  // Only the nearest existing group counts: the groups above it also count kills in other groups.
  for (const file of files) {
    const [, count] = /^oom_kill (\d+)$/m.exec(read(file) ?? '') ?? [];
    if (count !== undefined) return Number(count);
  }
  return undefined;
}

const MIB = 1024 * 1024;

/** Memory planned for each worker. A small app needs about this much after some requests. */
const MEMORY_PER_WORKER_BYTES = 160 * MIB;
/** Memory planned for the primary: its measured memory, rounded up. */
export const MEMORY_OF_PRIMARY_BYTES = 64 * MIB;

/**
 * The number of workers for `workers: 'auto'`: the number of cores that this process may use. It is
 * lower if the cgroup's memory limit has no room for these workers and a quarter more in a reload.
 * At least 1.
 */
export function availableWorkers(
  limits: CgroupLimits = readCgroupLimits(),
  affine: number = availableParallelism(),
): number {
  const cores = availableCores(limits, affine);
  const forWorkers = limits.memoryBytes - MEMORY_OF_PRIMARY_BYTES;
  const byMemory = Math.floor((Math.floor(forWorkers / MEMORY_PER_WORKER_BYTES) * 4) / 5);
  return Math.max(1, Math.min(cores, byMemory));
}

/**
 * The number of cores that CPU affinity and cgroup quota let this process use, at least 1. A quota
 * is rounded down, because part of a core cannot keep a worker busy.
 */
export function availableCores(
  limits: Pick<CgroupLimits, 'cpus'> = readCgroupLimits(),
  // availableParallelism() calls sched_getaffinity(2) on every supported Node
  affine: number = availableParallelism(),
): number {
  return Math.max(1, Math.min(affine, Math.floor(limits.cpus)));
}

/**
 * The paths of a file in this process's cgroup and in all cgroups above it. In a container the
 * cgroup's path may be a path on the host. Then only the root cgroup is found.
 *
 * @param controller the cgroup v1 controller; the empty string for v2.
 */
function groupFiles(read: FileReader, controller: string, file: string): string[] {
  const line = new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(/.*)$`, 'm');
  const [, path] = line.exec(read('/proc/self/cgroup') ?? '') ?? [];
  if (path === undefined) return [];
  const groups = ['/'];
  for (let at = posix.normalize(path); at !== '/'; at = posix.dirname(at)) {
    groups.splice(-1, 0, at);
  }
  return groups.map((group) => posix.join(ROOT, controller, group, file));
}

/** `max 100000` or `150000 100000`: quota and period in µs. */
function parseQuota(text: string | undefined): number {
  const [quota, period] = text?.trim().split(/\s+/) ?? [];
  const cpus = Number(quota) / Number(period);
  return cpus > 0 ? cpus : Infinity;
}

function parseBytes(text: string | undefined): number {
  const bytes = Number(text);
  return bytes > 0 && bytes < V1_UNLIMITED_BYTES ? bytes : Infinity;
}

function readTextFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined; // not Linux, not this cgroup version, or not mounted: no limit known
  }
}
