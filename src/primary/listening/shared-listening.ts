import type { BalancingStrategy } from '../../contract/options/index.js';
import type { WorkerHandle } from '../worker-handle.js';
import type { BoundSocket } from './bound-socket.js';
import type { Listening } from './listening.interface.js';

/**
 * One socket for all workers: each worker listens on it, and the kernel wakes an idle worker.
 * The primary keeps the socket open, so connections wait in its backlog while no worker is alive.
 *
 * If the socket has no handle (with round-robin, or if this Node version cannot keep a socket
 * open), workers listen through node:cluster and its scheduling policy.
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

  get sockets(): readonly BoundSocket[] {
    return [this.socket];
  }

  grant(worker: WorkerHandle): void {
    const { target, handle } = this.socket;
    worker.send({ type: 'listen', target }, handle);
  }

  reserve(): void {}

  settle(): void {}

  close(): void {
    this.socket.close();
  }
}
