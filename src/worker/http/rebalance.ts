import { performance } from 'node:perf_hooks';
import type { LoadReport } from '../../contract/ipc/index.js';
import type { Connection } from './connection.js';
import type { RequestTracker } from './request-tracker.js';

/**
 * A worker's part in the balance: it reports what it carries, and asks some of
 * its clients to connect again when the primary finds that it carries too much.
 */
export class Rebalance {
  #utilization = performance.eventLoopUtilization();
  #requestsTotal = 0;
  #chosen: readonly Connection[] = [];

  constructor(private readonly traffic: Pick<RequestTracker, 'connections' | 'requestsTotal'>) {}

  /** The load since the last call. */
  report(): LoadReport {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, this.#utilization);
    const requests = this.traffic.requestsTotal - this.#requestsTotal;
    this.#utilization = now;
    this.#requestsTotal = this.traffic.requestsTotal;
    let connections = 0;
    for (const connection of this.traffic.connections) {
      if (connection.countRecent() > 0 && connection.movable) connections += 1;
    }
    return { requests, connections, utilization };
  }

  /**
   * Gives away connections that carried about `ratio` of the load, and never
   * more. Connections that were chosen before and not used since may stay.
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
 * The connections that together carried about `ratio` of the load, the busiest
 * first, so that the fewest clients have to connect again. One that alone carries
 * more than that stays: its load would only move with it.
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
      // Also where the primary said no ratio.
      if (!(recentRequests <= left)) return false;
      left -= recentRequests;
      return true;
    });
}
