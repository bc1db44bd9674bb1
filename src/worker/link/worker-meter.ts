import { ProcessMeter } from '../../contract/process/process-meter.js';
import type { WorkerStats } from '../../contract/snapshot/index.js';
import type { RequestTracker } from '../http/request-tracker.js';

/** Measures this worker: its process and its requests. */
export class WorkerMeter {
  readonly #process = new ProcessMeter();

  constructor(
    private readonly tracker: RequestTracker,
    private readonly droppedLogLines: () => number = () => 0,
  ) {}

  /**
   * Ends the current interval and measures it. Called once a heartbeat; the
   * utilization and the delay are those since the last call.
   */
  measure(): WorkerStats {
    return { ...this.#process.measure(), ...this.#traffic() };
  }

  /** Begins anew: what coming up cost says nothing of how the worker serves. */
  restart(): void {
    this.#process.restart();
  }

  /** Fresh numbers if they are cheap. The last interval gives the numbers that need one. */
  peek(): WorkerStats {
    return { ...this.#process.peek(), ...this.#traffic() };
  }

  stop(): void {
    this.#process.stop();
  }

  #traffic() {
    const { openConnections, requestsInFlight, requestsTotal, rebalancedConnectionsTotal } =
      this.tracker;
    return {
      openConnections,
      requestsInFlight,
      requestsTotal,
      rebalancedConnectionsTotal,
      logLinesDroppedTotal: this.droppedLogLines(),
      droppedConnectionsTotal: this.tracker.droppedConnections,
    };
  }
}
