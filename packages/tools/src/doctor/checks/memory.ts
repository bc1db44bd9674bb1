import { totalmem } from 'node:os';
import type { Check } from '../finding.js';

/** Memory of the primary, measured and rounded up. */
const PRIMARY_BYTES = 64 * 1_024 * 1_024;

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

/** Checks that the memory is enough for all workers, if each needs as much as this process. */
export const memory = (
  residentBytes = () => process.memoryUsage.rss(),
  availableBytes = Math.min(totalmem(), process.constrainedMemory() || Infinity),
): Check => ({
  name: 'memory',
  remedy: 'start fewer workers (CLUSTER_WORKERS), or give them more memory',
  look: (_app, { workers }) => {
    const each = residentBytes();
    // During a reload there is one more worker.
    const needed = each * (workers + 1) + PRIMARY_BYTES;
    if (needed <= availableBytes) return [];
    return [
      {
        where: 'this machine or its control group',
        problem: `a worker holds ${megabytes(each)} before its first request; ${workers} workers, one more during a reload and the primary need ${megabytes(needed)}, and ${megabytes(availableBytes)} are available`,
      },
    ];
  },
});
