import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { ClusterProcess } from './cluster-process.js';

const preload = join(import.meta.dirname, '../fixtures/preload/announce-process.mjs');

/** Arguments of Node by which a program and every process it forks announce themselves. */
export const ANNOUNCE_PROCESSES = ['--import', pathToFileURL(preload).href];

/** Pids of all processes there ever were of a program started with {@link ANNOUNCE_PROCESSES}. */
export function startedProcesses({ output }: ClusterProcess): number[] {
  return [...output.matchAll(/^process (\d+) started$/gm)].map(([, pid]) => Number(pid));
}
