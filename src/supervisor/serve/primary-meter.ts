import { ProcessMeter } from '../../contract/process/process-meter.js';
import type { PrimaryStats, ProcessStats } from '../../contract/snapshot/index.js';

/** Measures the primary itself. */
export class PrimaryMeter {
  readonly #process = new ProcessMeter();

  constructor(private readonly droppedLogLines: () => number = () => 0) {}

  /** Ends the interval of what is measured over one. */
  measure(): ProcessStats {
    return this.#process.measure();
  }

  stats(): PrimaryStats {
    return {
      pid: process.pid,
      uptimeSeconds: Math.round(process.uptime() * 1_000) / 1_000,
      ...this.#process.peek(),
      logLinesDroppedTotal: this.droppedLogLines(),
    };
  }
}
