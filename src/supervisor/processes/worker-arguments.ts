import { getHeapStatistics } from 'node:v8';
import {
  type CgroupLimits,
  MEMORY_OF_PRIMARY_BYTES,
  readCgroupLimits,
} from '../../contract/options/index.js';
import { ownFile } from '../../contract/process/own-file.js';

const MIB = 1024 * 1024;

/** Of what a worker may hold, the part its JavaScript heap may grow to; the rest is code, stacks and buffers. */
const OLD_SPACE_RATIO = 0.75;

/** A Nest app does not even start with less. */
const MIN_OLD_SPACE_MIB = 48;

/** Who sets one of these has decided. */
const HEAP_FLAG = /--max[-_](old[-_]space|heap)[-_]size/;

/** What the decision rests on; all of it of the primary. */
export interface HeapSituation {
  readonly execArgv: readonly string[];
  readonly nodeOptions: string | undefined;
  readonly memoryBytes: CgroupLimits['memoryBytes'];
  /** What V8 would allow each worker by itself. */
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

/** Arguments of Node for a worker: those of the primary, and ours before them. */
export function workerArguments(workers: number): WorkerArguments {
  // Worth a word in a log, and no more: a bundler may have left it behind, and in an archive of
  // Yarn's Plug'n'Play Node could not read it.
  const preload =
    process.versions['pnp'] === undefined ? ownFile('worker/boot/early-boot.cjs') : undefined;
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
 * Where a container limits memory, a heap size for each worker with which all
 * of them fit into it. V8 alone would let each have what one process may have.
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
  // A share that no app starts with is no help; one above V8's own choice would only raise it.
  if (oldSpace < MIN_OLD_SPACE_MIB || oldSpace * MIB >= defaultHeapBytes) return [];
  return [`--max-old-space-size=${oldSpace}`];
}
