import { totalmem } from 'node:os';
import { MEMORY_OF_PRIMARY_BYTES, readCgroupLimits } from '../../../contract/options/index.js';
import type { Check } from '../../../observe/findings/finding.js';

const BYTES_PER_MB = 1e6;

/** The memory of one worker, and the memory available to all workers. */
export interface MemoryReading {
  readonly residentBytes: number;
  readonly availableBytes: number;
  /** The source of that limit. */
  readonly limitedBy: string;
}

/** Whether there is memory for that many workers, by what this one holds. */
export const memory = (read: () => MemoryReading = readMemory): Check => ({
  name: 'memory',
  remedy: 'start fewer workers (CLUSTER_WORKERS), or give them more memory',
  docs: 'docs/number-of-workers.md',
  look(_app, { workers }) {
    const { residentBytes, availableBytes, limitedBy } = read();
    // The one more is the new worker of a reload.
    const neededBytes = residentBytes * (workers + 1) + MEMORY_OF_PRIMARY_BYTES;
    if (neededBytes <= availableBytes) return [];
    return [
      {
        where: limitedBy,
        problem: `a worker that has served nothing yet holds ${megabytes(residentBytes)}; ${workers} of them, the one more of a reload and the primary are ${megabytes(neededBytes)}, and there are ${megabytes(availableBytes)}`,
      },
    ];
  },
});

function readMemory(): MemoryReading {
  const { memoryBytes } = readCgroupLimits();
  const residentBytes = process.memoryUsage.rss();
  return memoryBytes === undefined
    ? { residentBytes, availableBytes: totalmem(), limitedBy: 'this machine' }
    : { residentBytes, availableBytes: memoryBytes, limitedBy: 'the control group of the process' };
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / BYTES_PER_MB)} MB`;
}
