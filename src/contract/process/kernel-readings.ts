import { getHeapStatistics } from 'node:v8';
import type { ProcessStats } from '../snapshot/index.js';

const US_PER_SECOND = 1e6;
const BYTES_PER_KB = 1024;

type Readings = Pick<ProcessStats, 'residentMemoryBytes' | 'heapUsedBytes' | 'cpuSecondsTotal'>;

/**
 * Measurements of this process that need the kernel, and fail where it refuses: `memoryUsage()`
 * opens a file of /proc, for which there may be no descriptor left, or no /proc at all. Supervision
 * rests on them, so they never throw: the last known value stands for one that fails.
 */
export class KernelReadings {
  #residentMemoryBytes: number | undefined;
  #heapUsedBytes = 0;
  #cpuSecondsTotal = 0;

  read(): Readings {
    attempt(() => {
      const { rss, heapUsed } = process.memoryUsage();
      this.#residentMemoryBytes = rss;
      this.#heapUsedBytes = heapUsed;
    }, this.#readWithoutFiles);
    attempt(() => {
      const { user, system } = process.cpuUsage();
      this.#cpuSecondsTotal = (user + system) / US_PER_SECOND;
    });
    return {
      residentMemoryBytes: this.#residentMemoryBytes ?? peakResidentBytes(),
      heapUsedBytes: this.#heapUsedBytes,
      cpuSecondsTotal: this.#cpuSecondsTotal,
    };
  }

  readonly #readWithoutFiles = (): void => {
    this.#heapUsedBytes = getHeapStatistics().used_heap_size;
  };
}

/** The most that this process has ever held: all that is known where there is no /proc. */
function peakResidentBytes(): number {
  let bytes = 0;
  attempt(() => (bytes = process.resourceUsage().maxRSS * BYTES_PER_KB));
  return bytes;
}

function attempt(read: () => void, otherwise: () => void = () => {}): void {
  try {
    read();
  } catch {
    otherwise(); // what was measured before stands
  }
}
