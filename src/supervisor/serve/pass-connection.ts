import type { PassedConnection } from '../../contract/ipc/index.js';
import type { ServerHandle } from '../listening/bound-socket.js';
import type { WorkerHandle } from '../processes/worker-handle.js';

/**
 * Passes an open connection to the worker that takes what is sent to that name, ready or not. It goes
 * back to its sender where there is none, or where that one does not read.
 *
 * @param handle `undefined` where this process had no descriptor for it.
 */
export function passConnection(
  workers: readonly WorkerHandle[],
  sender: WorkerHandle,
  { to, from, head }: PassedConnection & { readonly from: string },
  handle: ServerHandle | undefined,
): void {
  if (handle === undefined) return;
  const owner = workers.find((worker) => worker.takes.has(to) && !worker.congested);
  const passed = { type: 'passed', to: owner === undefined ? from : to, head } as const;
  (owner ?? sender).send(passed, handle, () => handle.close());
}
