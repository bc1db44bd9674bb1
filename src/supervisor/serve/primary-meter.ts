import { ProcessMeter } from '../../contract/process/process-meter.js';
import type { PrimaryStats, ProcessStats } from '../../contract/snapshot/index.js';

export class PrimaryMeter {
  readonly #process = new ProcessMeter();

  constructor(private readonly droppedLogLines: () => number) {}

  /** Ends a measuring interval and begins the next. @returns the values of the ended interval. */
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
