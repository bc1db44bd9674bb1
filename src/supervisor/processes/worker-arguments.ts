import { getHeapStatistics } from 'node:v8';
import {
  type CgroupLimits,
  MEMORY_OF_PRIMARY_BYTES,
  readCgroupLimits,
} from '../../contract/options/index.js';
import { ownFileFor } from '../../contract/process/own-file.js';

const MIB = 1024 * 1024;

/** The share of a worker's memory for its JavaScript heap. The rest is code, stacks and buffers. */
const OLD_SPACE_RATIO = 0.75;

/** A Nest app does not even start with less. */
const MIN_OLD_SPACE_MIB = 48;

/** A user who sets one of these flags has decided. */
const HEAP_FLAG = /--max[-_](old[-_]space|heap)[-_]size/;

/** The facts for the decision, all of the primary. */
export interface HeapSituation {
  readonly execArgv: readonly string[];
  readonly nodeOptions: string | undefined;
  readonly memoryBytes: CgroupLimits['memoryBytes'];
  /** The heap that V8 alone would allow each worker. */
  readonly defaultHeapBytes: number;
}

function currentSituation(): HeapSituation {
  return {
    execArgv: process.execArgv,
    nodeOptions: process.env['NODE_OPTIONS'],
    memoryBytes: readCgroupLimits().memoryBytes,
    defaultHeapBytes: getHeapStatistics().heap_size_limit,
  };
}

/** With what Node starts a worker. */
export interface WorkerArguments {
  readonly execArgv: string[];
  /** How many of the first are ours. */
  readonly own: number;
}

/**
 * Node's arguments for a worker: ours first, then the primary's.
 *
 * @param script of the worker's release.
 */
export function workerArguments(workers: number, script: string): WorkerArguments {
  // Worth a word in a log, and no more: a bundler may have left it behind, and in an archive of
  // Yarn's Plug'n'Play Node could not read it. Threads of the worker preload it once more, so it is
  // a file of the worker's own release: the release of the primary may have been removed by then.
  const preload =
    process.versions['pnp'] === undefined
      ? ownFileFor(script, 'worker/boot/early-boot.cjs')
      : undefined;
  const own = [...(preload === undefined ? [] : ['--require', preload]), ...heapArguments(workers)];
  // Ours first: a runner that puts itself into execArgv (ts-node) takes what comes after as its own.
  return { execArgv: [...own, ...process.execArgv], own: own.length };
}

/** Whether Node's inspector may stop a worker from its first line on. */
export function mayBeDebugged(
  execArgv: readonly string[] = process.execArgv,
  nodeOptions: string = process.env['NODE_OPTIONS'] ?? '',
): boolean {
  return [...execArgv, nodeOptions].some((text) => /--inspect/.test(text));
}

/**
 * A heap size with which all workers fit into a container's memory limit. V8
 * alone would let each of them grow as large as a single process may.
 */
export function heapArguments(
  workers: number,
  situation: HeapSituation = currentSituation(),
): string[] {
  const { execArgv, nodeOptions, memoryBytes, defaultHeapBytes } = situation;
  if (memoryBytes === undefined) return [];
  if ([...execArgv, nodeOptions ?? ''].some((text) => HEAP_FLAG.test(text))) return [];
  const share = (memoryBytes - MEMORY_OF_PRIMARY_BYTES) / workers;
  const oldSpace = Math.floor((share * OLD_SPACE_RATIO) / MIB);
  // No app starts with a smaller share, and a share above V8's own choice would only raise it.
  if (oldSpace < MIN_OLD_SPACE_MIB || oldSpace * MIB >= defaultHeapBytes) return [];
  return [`--max-old-space-size=${oldSpace}`];
}
