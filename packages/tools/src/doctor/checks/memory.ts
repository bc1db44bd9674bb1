import { totalmem } from 'node:os';
import { MEMORY_OF_PRIMARY_BYTES, readCgroupLimits } from '../../../contract/options/index.js';
import type { Check } from '../../../observe/findings/finding.js';
import { formatMegabytes } from '../../control/view/table.js';

/** The memory of one worker, and the memory available to all workers. */
export interface MemoryReading {
  readonly residentBytes: number;
  readonly availableBytes: number;
  /** The name of the machine's or container's limit, for the report. */
  readonly limitedBy: string;
}

/** Checks that the memory is enough for all workers, if each needs as much as this one. */
export const memory = (read: () => MemoryReading = readMemory): Check => ({
  name: 'memory',
  remedy: 'start fewer workers (CLUSTER_WORKERS), or give them more memory',
  look(_app, { workers }) {
    const { residentBytes, availableBytes, limitedBy } = read();
    // During a reload there is one more worker.
    const neededBytes = residentBytes * (workers + 1) + MEMORY_OF_PRIMARY_BYTES;
    if (neededBytes <= availableBytes) return [];
    return [
      {
        where: limitedBy,
        problem: `a worker that has served nothing yet holds ${formatMegabytes(residentBytes)} MB; ${workers} of them, the one more of a reload and the primary are ${formatMegabytes(neededBytes)} MB, and there are ${formatMegabytes(availableBytes)} MB`,
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
