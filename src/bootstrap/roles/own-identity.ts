import { readAssignment } from '../../contract/ipc/assignment.js';
import type { WorkerIdentity } from '../../contract/snapshot/index.js';

/** Read once: a worker keeps its name when its primary is gone. */
const OWN_IDENTITY = identityIn(process.env);

/**
 * Which worker this code runs in, for loggers and other code that has no
 * `ClusterService`. Nest is not needed, and `bootstrap()` need not have been
 * called: it may be used at the top level of any file, also in a thread of the worker.
 *
 * @returns `undefined` outside of a worker: in the primary, with `workers: 0`, without
 * `bootstrap()`, and in a process that a worker started.
 */
export function workerIdentity(): WorkerIdentity | undefined {
  return OWN_IDENTITY;
}

/** The identity that a primary has put into the environment of a process. */
export function identityIn(
  env: NodeJS.ProcessEnv,
  { pid, ppid }: Pick<NodeJS.Process, 'pid' | 'ppid'> = process,
): WorkerIdentity | undefined {
  const assigned = readAssignment(env);
  if (assigned === undefined) return undefined;
  const { slot, generation, primaryPid } = assigned;
  // Processes that a worker starts inherit its environment.
  return ppid === primaryPid ? { slot, pid, generation } : undefined;
}
