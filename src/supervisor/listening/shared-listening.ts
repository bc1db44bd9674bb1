import type { BalancingStrategy } from '../../contract/options/index.js';
import type { WorkerHandle } from '../processes/worker-handle.js';
import type { BoundSocket } from './bound-socket.js';
import type { Listening } from './listening.interface.js';

/**
 * One socket for all: every worker listens on it, and the kernel wakes one that
 * is free. It outlives every worker: connections made while none is alive wait
 * in its backlog.
 *
 * Without a handle (round-robin, or a Node that cannot hold a socket) workers
 * listen through node:cluster, by its scheduling policy.
 */
export class SharedListening implements Listening {
  readonly ports = [];

  constructor(
    readonly balancing: BalancingStrategy,
    private readonly socket: BoundSocket,
  ) {}

  get url(): string {
    return this.socket.url;
  }

  grant(worker: WorkerHandle): void {
    const { target, handle } = this.socket;
    worker.send({ type: 'listen', target }, handle);
  }

  reserve(): void {}

  settle(): void {}

  close(): number {
    return this.socket.close();
  }
}
