import type { LoadReport } from '../../contract/messages.js';
import { utilizationReader } from '../../contract/process/process-meter.js';
import type { Connection } from '../serve/connection.js';
import type { RequestTracker } from '../serve/tracker.js';

/**
 * The worker's part of load balancing. Reports the load to the primary. If the load is too high, the
 * primary makes the worker ask some clients to reconnect.
 */
export class Rebalance {
  readonly #utilization = utilizationReader();
  #requestsTotal = 0;
  #chosen: readonly Connection[] = [];

  constructor(private readonly traffic: Pick<RequestTracker, 'connections' | 'requestsTotal'>) {}

  report(): LoadReport {
    const requests = this.traffic.requestsTotal - this.#requestsTotal;
    this.#requestsTotal = this.traffic.requestsTotal;
    let connections = 0;
    for (const connection of this.traffic.connections) {
      if (connection.countRecent() > 0 && connection.movable) connections += 1;
    }
    return { requests, connections, utilization: this.#utilization() };
  }

  /**
   * Asks some clients to reconnect. Together, their connections carried at most `ratio` of the
   * load. Cancels an earlier call for clients not yet asked.
   */
  giveAway(ratio: number): void {
    for (const connection of this.#chosen) connection.stay();
    this.#chosen = choose(
      [...this.traffic.connections].filter(({ movable }) => movable),
      ratio,
    );
    for (const connection of this.#chosen) connection.leave();
  }
}

/**
 * Chooses connections that together carried at most `ratio` of the load. Starts with the busiest, so
 * that few clients have to reconnect. Never chooses a connection that alone carried more than
 * `ratio`, because it would only overload another worker.
 */
export function choose<C extends { readonly recentRequests: number }>(
  connections: readonly C[],
  ratio: number,
): C[] {
  const used = connections.filter(({ recentRequests }) => recentRequests > 0);
  let left = ratio * used.reduce((sum, { recentRequests }) => sum + recentRequests, 0);
  return used
    .sort((a, b) => b.recentRequests - a.recentRequests)
    .filter(({ recentRequests }) => {
      // Negated, so that no connection is chosen if `left` is NaN because the primary sent no ratio.
      if (!(recentRequests <= left)) return false;
      left -= recentRequests;
      return true;
    });
}
