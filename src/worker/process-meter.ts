import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { WorkerStats } from '../snapshot/index.js';
import type { RequestTracker } from './request-tracker.js';

const NS_PER_MS = 1e6;

/** Resolution of the delay histogram: its timer is the price, 50 wake-ups a second. */
const DELAY_RESOLUTION_MS = 20;

/** Measures this process: memory, event loop, requests. */
export class ProcessMeter {
  readonly #delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  #utilization = performance.eventLoopUtilization();
  #lastStats: WorkerStats | undefined;

  constructor(private readonly tracker: RequestTracker) {
    this.#delay.enable();
  }

  /**
   * Ends the current interval and measures it. Called once a heartbeat; the
   * utilization and the delay are those since the last call.
   */
  measure(): WorkerStats {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#utilization);
    // The histogram counts the timer's whole period; what is above it is the delay.
    const p99Ms = this.#delay.count > 0 ? this.#delay.percentile(99) / NS_PER_MS : 0;
    this.#utilization = now;
    this.#delay.reset();
    this.#lastStats = {
      ...this.#current(),
      eventLoopUtilization: round(utilization),
      eventLoopDelayP99Ms: round(Math.max(0, p99Ms - DELAY_RESOLUTION_MS)),
    };
    return this.#lastStats;
  }

  /** Fresh numbers where they are cheap, those of the last interval where they need one. */
  peek(): WorkerStats {
    const last = this.#lastStats ?? this.measure();
    return { ...last, ...this.#current() };
  }

  stop(): void {
    this.#delay.disable();
  }

  #current() {
    const { rss, heapUsed } = process.memoryUsage();
    return {
      residentMemoryBytes: rss,
      heapUsedBytes: heapUsed,
      openConnections: this.tracker.openConnections,
      requestsInFlight: this.tracker.requestsInFlight,
      requestsTotal: this.tracker.requestsTotal,
      rebalancedConnectionsTotal: this.tracker.rebalancedConnectionsTotal,
    };
  }
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}
