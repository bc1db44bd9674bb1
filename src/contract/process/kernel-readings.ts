import { getHeapStatistics } from 'node:v8';
import type { ProcessStats } from '../snapshot/index.js';

const US_PER_SECOND = 1e6;
const BYTES_PER_KB = 1024;

type Readings = Pick<ProcessStats, 'residentMemoryBytes' | 'heapUsedBytes' | 'cpuSecondsTotal'>;

/**
 * Measurements of this process that come from the kernel and may fail: `memoryUsage()` opens a file
 * of /proc, which may be missing, or no file descriptor may be left. Supervision needs them, so
 * `read()` never throws. For a measurement that fails, it returns the last known value.
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

/** The highest resident memory of this process so far: the only value that is known without /proc. */
function peakResidentBytes(): number {
  let bytes = 0;
  attempt(() => (bytes = process.resourceUsage().maxRSS * BYTES_PER_KB));
  return bytes;
}

function attempt(read: () => void, otherwise: () => void = () => {}): void {
  try {
    read();
  } catch {
    otherwise(); // the earlier value stays
  }
}
