import cluster from 'node:cluster';
import { isMainThread } from 'node:worker_threads';
import { ClusterConfigurationError } from '../../contract/errors/errors.js';
import { type OwnAssignment, readAssignment } from '../../contract/process/assignment.js';
import type { WorkerIdentity } from '../../contract/snapshot/types.js';

export type Role =
  | { readonly name: 'parent' }
  | { readonly name: 'worker'; readonly assignment: OwnAssignment }
  | { readonly name: 'bystander' };

/**
 * Detects the role of this process. `cluster.isPrimary` is also true in every thread and in every
 * process that a worker starts, so with that check alone, clusters would start clusters without end.
 *
 * @throws ClusterConfigurationError in a worker of a cluster that is not from this package.
 */
export function detectRole(env: NodeJS.ProcessEnv = process.env): Role {
  if (!isMainThread) return { name: 'bystander' };
  const assigned = readAssignment(env);
  if (assigned !== undefined) {
    const identity = identityIn(env);
    if (!cluster.isWorker || identity === undefined) return { name: 'bystander' };
    return { name: 'worker', assignment: { ...assigned, identity } };
  }
  if (cluster.isWorker) {
    throw new ClusterConfigurationError(
      'this process is a worker of another cluster (pm2 in cluster mode, or a node:cluster loop of your own), which cannot have workers itself; start the app as one plain process: with pm2 in fork mode',
    );
  }
  return { name: 'parent' };
}

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

/**
 * Sets the title of this process for `ps`. On Linux a title is cut if it is longer than the command
 * line was (`node app.js` has 11 characters). The first of `titles` that is not cut is used. If all
 * are cut, the title does not change.
 */
export function setTitle(...titles: readonly string[]): void {
  const before = process.title;
  for (const title of titles) {
    process.title = title;
    if (process.title === title) return;
  }
  process.title = before;
}

/** The warning when `bootstrap()` was given an address, but the app has no HTTP server. */
export const NO_HTTP_SERVER =
  'the app has no HTTP server, and nothing listens on the address that bootstrap() was given; leave "port", "host" and "path" out';
