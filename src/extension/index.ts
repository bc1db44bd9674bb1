import type { Extension } from '../contract/snapshot/types.js';
import { currentLink } from '../contract/snapshot/current-link.js';

export type {
  Extension,
  Metrics,
  MetricsClient,
  MetricsContribution,
  WorkerIdentity,
} from '../contract/snapshot/types.js';
export type { PackageThreadData } from './package-thread.js';
export {
  REMOTE_RUNNER,
  type RemoteRunner,
  type RemoteSituation,
} from '../offload/run/remote-runner.js';
export type { Task } from '../offload/run/runner.interface.js';
export type { TaskError } from '../offload/task/task-error.js';

/** The parts of this process that packages use. @returns `undefined` if `bootstrap()` was not called here. */
export function extension(): Extension | undefined {
  return currentLink();
}

/** Makes a drain ignore this WebSocket, because the caller closes it. */
export function closedByOwner(socket: object): void {
  Reflect.set(socket, Symbol.for('nestjs-cluster.closed-by-owner'), true);
}
