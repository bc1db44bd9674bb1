import type { PassedConnection } from '../../contract/ipc/index.js';
import type { ServerHandle } from '../listening/bound-socket.js';
import { isResponsive, type WorkerHandle } from '../processes/worker-handle.js';
import type { WorkerTable } from '../processes/worker-table.js';

/** Brings open connections from one worker to another. */
export class HandOver {
  #turn = 0;

  constructor(private readonly table: Pick<WorkerTable, 'workers'>) {}

  /**
   * Of a worker that leaves, to those that stay, in turn.
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

  /** To the one who takes what is passed to that name, ready or not; back where nobody does, or it does not read. */
  pass(
    from: WorkerHandle,
    { to, from: own, head }: PassedConnection & { readonly from: string },
    handle: ServerHandle | undefined,
  ): void {
    if (handle === undefined) return;
    const owner = this.table.workers.find((worker) => worker.takes.has(to) && !worker.congested);
    const passed = { type: 'passed', to: owner === undefined ? own : to, head } as const;
    (owner ?? from).send(passed, handle, () => handle.close());
  }
}
