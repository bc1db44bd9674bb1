import type { BalancingStrategy } from '../../contract/options/index.js';
import type { WorkerHandle } from '../worker-handle.js';
import type { BoundSocket } from './bound-socket.js';

/** Gives the workers their listening sockets, according to the balancing strategy. */
export interface Listening {
  /** `'none'` until an address is bound. */
  readonly balancing: BalancingStrategy | 'none';
  /** The address of the cluster; if each slot has its own port, the address of slot 0. */
  readonly url: string;
  /** The port of each slot, if each slot has its own port; otherwise empty. */
  readonly ports: readonly number[];
  readonly sockets: readonly BoundSocket[];
  /** Sends a worker the socket or the address to listen on. */
  grant(worker: WorkerHandle): void;
  /**
   * Makes sure that this number of slots can listen.
   *
   * @throws ClusterAddressError if a socket cannot be bound. In this case no socket has changed.
   */
  reserve(slots: number): void;
  /** Adapts to workers that have started, exited or stopped answering. @param now monotonic ms. */
  settle(workers: readonly WorkerHandle[], now: number): void;
  close(): void;
}
