import { readAssignment } from '../../contract/process/assignment.js';
import type { WorkerIdentity } from '../../contract/snapshot/index.js';

/** Read once at the start, so that a worker keeps its identity after its primary has ended. */
const OWN_IDENTITY = identityIn(process.env);

/**
 * The worker in which this code runs, for loggers and other code without `ClusterService`. Works
 * without Nest and before `bootstrap()` is called, so it can be used at the top level of any file,
 * and also in threads of the worker.
 *
 * @returns `undefined` outside of a worker: in the primary, with `workers: 0`, without
 *   `bootstrap()`, and in a process that a worker started.
 */
export function workerIdentity(): WorkerIdentity | undefined {
  return OWN_IDENTITY;
}

/** The identity that the primary has put into the environment of this process. */
export function identityIn(
  env: NodeJS.ProcessEnv,
  { pid, ppid }: Pick<NodeJS.Process, 'pid' | 'ppid'> = process,
): WorkerIdentity | undefined {
  const assigned = readAssignment(env);
  if (assigned === undefined) return undefined;
  const { slot, generation, primaryPid } = assigned;
  // A process that a worker started inherits the variable, but has another parent.
  return ppid === primaryPid ? { slot, pid, generation } : undefined;
}
