import type { BalancingStrategy } from '../../contract/options/index.js';
import type { WorkerHandle } from '../processes/worker-handle.js';

/** How the workers of a cluster come to listen: one way for each balancing strategy. */
export interface Listening {
  /** `'none'` while nothing is bound. */
  readonly balancing: BalancingStrategy | 'none';
  /** The address for the first connection. */
  readonly url: string;
  /** Ports of the slots, where each has one of its own; else none. */
  readonly ports: readonly number[];
  /** Gives a worker what it is to listen on. */
  grant(worker: WorkerHandle): void;
  /**
   * Makes sure that there is something to listen on for as many slots.
   *
   * @throws ClusterAddressError where there is not; nothing has changed then.
   */
  reserve(slots: number): void;
  /** Workers may have come, gone or stopped answering since this was last called. */
  settle(workers: readonly WorkerHandle[], now: number): void;
  /** Lets go of every address. @returns how many connections that waited for a worker were reset by it. */
  close(): number;
}
