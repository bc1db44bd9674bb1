import { totalmem } from 'node:os';
import { figure } from '../../output.js';
import type { Check } from '../finding.js';

/** About what the primary holds. */
const PRIMARY_BYTES = 70e6;

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
    const neededBytes = residentBytes * (workers + 1) + PRIMARY_BYTES;
    if (neededBytes <= availableBytes) return [];
    return [
      {
        where: limitedBy,
        problem: `a worker that has served nothing yet holds ${figure(residentBytes / 1e6)} MB; ${workers} of them, the one more of a reload and the primary are ${figure(neededBytes / 1e6)} MB, and there are ${figure(availableBytes / 1e6)} MB`,
      },
    ];
  },
});

function readMemory(): MemoryReading {
  const residentBytes = process.memoryUsage.rss();
  const constrained = process.constrainedMemory();
  return constrained > 0 && constrained < totalmem()
    ? { residentBytes, availableBytes: constrained, limitedBy: 'the control group of the process' }
    : { residentBytes, availableBytes: totalmem(), limitedBy: 'this machine' };
}
