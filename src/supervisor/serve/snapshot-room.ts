import { freemem } from 'node:os';
import { InspectionError } from '../../contract/errors/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { inMegabytes } from '../decide/policies/memory.policy.js';
import { residentMemoryBytes } from './resident-memory.js';
import type { WorkerHandle } from '../processes/worker-handle.js';

/**
 * Bytes of V8's graph and unread text in a snapshot, per byte of the heap. Measured with heaps of 40
 * to 200 MB: table rows take 9 to 10 on Node 20 and 22, and 7 from Node 24 on. Long strings take less
 * than 1, small objects and map entries 20 to 30. The values here are for rows, plus a fifth.
 */
const GRAPH_PER_HEAP_BYTE = Number.parseInt(process.versions.node, 10) < 24 ? 12 : 9;

/** Free memory for this process, within the limit of its control group if it has one. */
function availableBytes(): number {
  return Math.min(process.availableMemory(), freemem());
}

/**
 * Checks that there is memory for a heap snapshot of a worker, and for the new worker that replaces
 * it first.
 *
 * @throws InspectionError with the figures, if there is not.
 */
export function roomForSnapshot(
  { identity: { slot, pid }, stats }: Pick<WorkerHandle, 'identity' | 'stats'>,
  { hardLimitBytes }: ResolvedClusterOptions['memory'],
  available: () => number = availableBytes,
  measure: (pid: number) => number | undefined = residentMemoryBytes,
): void {
  const residentBytes = measure(pid) ?? stats?.residentMemoryBytes ?? 0;
  const graphBytes = GRAPH_PER_HEAP_BYTE * (stats?.heapUsedBytes ?? residentBytes);
  const freeBytes = available();
  const neededBytes = residentBytes + graphBytes;
  if (neededBytes > freeBytes) {
    refuse(
      slot,
      `${inMegabytes(neededBytes)} of memory (another worker of ${inMegabytes(residentBytes)}, and ${inMegabytes(graphBytes)} for the snapshot), and ${inMegabytes(freeBytes)} are available`,
    );
  }
  if (residentBytes + graphBytes > hardLimitBytes) {
    refuse(
      slot,
      `${inMegabytes(graphBytes)} more than the ${inMegabytes(residentBytes)} that it holds, above memory.hardLimitBytes (${inMegabytes(hardLimitBytes)}), at which it is killed`,
    );
  }
}

function refuse(slot: number, needs: string): never {
  throw new InspectionError(
    'no-memory',
    `a heap snapshot of worker=${slot} needs ${needs}; take a heap profile, which needs hardly any`,
  );
}
