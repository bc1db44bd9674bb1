import { getHeapStatistics } from 'node:v8';
import { MEMORY_OF_PRIMARY_BYTES, readCgroupLimits } from '../contract/process/machine.js';
import { ownFile } from '../contract/process/own-file.js';

const MIB = 1024 * 1024;

/** The share of a worker's memory for its JavaScript heap. The rest is code, stacks and buffers. */
const OLD_SPACE_RATIO = 0.75;

/** The smallest heap in which a Nest app starts. */
const MIN_OLD_SPACE_MIB = 48;

/**
 * In MB. With V8's minimum of 1 MB after `collectStartGarbage()`, a light request costs 15 % more CPU.
 * With 16 MB, it costs no less than with 4, and a loaded worker needs 13 to 55 MB more.
 */
const YOUNG_GENERATION = '--min-semi-space-size=4';

/** If the user sets one of these flags, no heap size is added. */
const HEAP_FLAG = /--max[-_](old[-_]space|heap)[-_]size/;

export type HeapSituation = ReturnType<typeof currentSituation>;

/** The inputs for a worker's heap size, read in the primary. */
function currentSituation() {
  return {
    execArgv: process.execArgv,
    nodeOptions: process.env['NODE_OPTIONS'],
    /** `Infinity` = no limit. */
    memoryBytes: readCgroupLimits().memoryBytes,
    /** V8's default heap limit for each worker. */
    defaultHeapBytes: getHeapStatistics().heap_size_limit,
  };
}

/** Node's options for a worker. The first `own` options belong to this package. */
export function workerArguments(workers: number, script: string) {
  // The preload only reports why an app cannot be loaded. It may be missing from a bundle, and Node
  // cannot read it from a Yarn Plug'n'Play archive. The worker's threads load it again later, when
  // the primary's release may be gone, so the preload comes from the worker's own release.
  const preload =
    process.versions['pnp'] === undefined
      ? ownFile('dist/programs/early-boot.cjs', script)
      : undefined;
  const heap = [...heapArguments(workers), YOUNG_GENERATION];
  const own = [...(preload === undefined ? [] : ['--require', preload]), ...heap];
  // This package's options come first, because a runner in execArgv (ts-node) consumes all options after it.
  return { execArgv: [...own, ...process.execArgv], own: own.length };
}

/** Whether Node's inspector may pause a worker as early as its first line. */
export function mayBeDebugged(
  execArgv: readonly string[] = process.execArgv,
  nodeOptions: string = process.env['NODE_OPTIONS'] ?? '',
): boolean {
  return [...execArgv, nodeOptions].some((text) => /--inspect/.test(text));
}

/**
 * The V8 flag for the heap size at which all workers fit in the container's memory limit; empty if
 * no flag is needed. By default, V8 lets each worker grow as large as a lone process may.
 */
export function heapArguments(
  workers: number,
  situation: HeapSituation = currentSituation(),
): string[] {
  const { execArgv, nodeOptions, memoryBytes, defaultHeapBytes } = situation;
  if ([...execArgv, nodeOptions ?? ''].some((text) => HEAP_FLAG.test(text))) return [];
  const share = (memoryBytes - MEMORY_OF_PRIMARY_BYTES) / workers;
  const oldSpace = Math.floor((share * OLD_SPACE_RATIO) / MIB);
  // Below the minimum, no app starts. Above V8's default, the flag would only raise the limit.
  if (oldSpace < MIN_OLD_SPACE_MIB || oldSpace * MIB >= defaultHeapBytes) return [];
  return [`--max-old-space-size=${oldSpace}`];
}
