import type { PassedConnection } from '../../contract/ipc/index.js';
import type { ServerHandle } from '../listening/bound-socket.js';
import type { WorkerHandle } from '../processes/worker-handle.js';

/**
 * Passes a connection to the worker that takes connections under the name `to`, even if it is not
 * ready. Without such a worker, or if it is congested, the connection goes back to its sender.
 *
 * @param handle `undefined` if the primary had no descriptor for the connection.
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
