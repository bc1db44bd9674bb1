import { freemem } from 'node:os';
import { InspectionError } from '../../contract/errors/index.js';
import type { ResolvedClusterOptions } from '../../contract/options/index.js';
import { residentMemoryBytes } from './resident-memory.js';
import type { WorkerHandle } from '../processes/worker-handle.js';

/**
 * The size of V8's graph of a heap and its unread text, per byte of the heap. Measured on 40 to
 * 200 MB: rows of a table take 9 to 10 on Node 20 and 22, and 7 from Node 24 on; long strings less
 * than 1; millions of small objects or map entries 20 to 30. The bound is for rows, and a fifth more.
 */
const GRAPH_PER_HEAP_BYTE = Number.parseInt(process.versions.node, 10) < 24 ? 12 : 9;

/** What is free for this process, and for its control group where that has a limit. */
function availableBytes(): number {
  return Math.min(process.availableMemory?.() ?? Infinity, freemem());
}

/**
 * Whether there is memory for a snapshot of the heap of a worker, and for the
 * worker that is to take its place before.
 *
 * @throws InspectionError with the figures, where there is not.
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
      `${inMegabytes(graphBytes)} beside the ${inMegabytes(residentBytes)} that it holds, above memory.hardLimitBytes (${inMegabytes(hardLimitBytes)}), at which it is killed`,
    );
  }
}

function refuse(slot: number, needs: string): never {
  throw new InspectionError(
    'no-memory',
    `a heap snapshot of worker=${slot} needs ${needs}; take a heap profile, which needs hardly any`,
  );
}

function inMegabytes(bytes: number): string {
  return `${Math.round(bytes / 1e6)} MB`;
}
