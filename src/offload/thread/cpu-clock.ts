import { openSync, readSync } from 'node:fs';

/** Room for the three numbers of a schedstat file. */
const SCHEDSTAT_BYTES = 64;

/**
 * Measures the CPU time of the thread that creates it, user and system. A reading takes less than
 * 1 µs. Linux updates schedstat only when the thread waits, and at the kernel's tick (4 ms). So each
 * lap begins at the end of the one before: the sum is exact, although the last ms of a call may be
 * counted with the next call.
 */
export class CpuClock {
  #lastMs: number;

  private constructor(private readonly readMs: () => number) {
    this.#lastMs = readMs();
  }

  /** `undefined` if neither Node nor the system knows the CPU time of a thread. */
  static ofThread(): CpuClock | undefined {
    const readMs = readByNode() ?? readBySystem();
    return readMs && new CpuClock(readMs);
  }

  /** The CPU time since the last call of this method, or since the clock was created, in ms. */
  lapMs(): number {
    const before = this.#lastMs;
    this.#lastMs = this.readMs();
    return this.#lastMs - before;
  }
}

function readByNode(): (() => number) | undefined {
  // Since Node 22.19 and 23.9.
  const usage = (process as { threadCpuUsage?: () => NodeJS.CpuUsage }).threadCpuUsage;
  if (usage === undefined) return undefined;
  return () => {
    const { user, system } = usage();
    return (user + system) / 1_000;
  };
}

function readBySystem(): (() => number) | undefined {
  try {
    const file = openSync('/proc/thread-self/schedstat', 'r');
    const text = Buffer.alloc(SCHEDSTAT_BYTES);
    const readMs = (): number => {
      const length = readSync(file, text, 0, SCHEDSTAT_BYTES, 0);
      return Number.parseInt(text.toString('latin1', 0, length), 10) / 1e6;
    };
    // A sandbox may have the file without the numbers.
    return readMs() > 0 ? readMs : undefined;
  } catch {
    return undefined; // not Linux, or a kernel without these statistics
  }
}
