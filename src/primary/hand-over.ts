import type { ServerHandle } from './listening/bound-socket.js';
import { isResponsive, type WorkerHandle } from './worker-handle.js';
import type { WorkerTable } from './worker-table.js';

/** Gives open connections of workers that leave to those that stay, in turn. */
export class HandOver {
  #turn = 0;

  constructor(private readonly table: Pick<WorkerTable, 'workers'>) {}

  /**
   * Where nobody else could take it, it goes back to where it came from.
   *
   * @param server the address that the worker's server listens on.
   * @param handle `undefined` where this process had no descriptor for it.
   */
  give(from: WorkerHandle, server: string, handle: ServerHandle | undefined): void {
    if (handle === undefined) return;
    const now = performance.now();
    const heirs = this.table.workers.filter(
      (worker) =>
        worker !== from &&
        worker.state === 'ready' &&
        isResponsive(worker, now) &&
        !worker.congested,
    );
    const heir = heirs[this.#turn++ % heirs.length] ?? from;
    heir.send({ type: 'connection', server }, handle, () => handle.close());
  }
}
