import { ProcessMeter } from '../../contract/process/process-meter.js';
import type { PrimaryStats } from '../../contract/snapshot/index.js';

export class PrimaryMeter extends ProcessMeter {
  constructor(private readonly droppedLogLines: () => number) {
    super();
  }

  stats(): PrimaryStats {
    return {
      pid: process.pid,
      uptimeSeconds: Math.round(process.uptime() * 1_000) / 1_000,
      ...this.peek(),
      logLinesDroppedTotal: this.droppedLogLines(),
    };
  }
}
