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
 * Detects the role of this process. `cluster.isPrimary` is not enough: it is also true in threads and
 * in processes that a worker has started, so a cluster would start further clusters.
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
      'this process is a worker of another cluster (pm2 in cluster mode, or your own use of node:cluster), so it cannot start workers; start the app as a single process, with pm2 in fork mode',
    );
  }
  return { name: 'parent' };
}

/** Read once at startup, so that a worker keeps its identity after its primary has died. */
const OWN_IDENTITY = identityIn(process.env);

/**
 * Returns the identity of the worker that runs this code, for loggers and other code without
 * `ClusterService`. Works without Nest, before `bootstrap()` is called, and in threads of the worker.
 *
 * @returns `undefined` outside of a worker: in the primary, with `workers: 0`, without
 *   `bootstrap()`, and in a process that a worker has started.
 */
export function workerIdentity(): WorkerIdentity | undefined {
  return OWN_IDENTITY;
}

/** The identity that the primary has set in the environment of this process. */
export function identityIn(
  env: NodeJS.ProcessEnv,
  { pid, ppid }: Pick<NodeJS.Process, 'pid' | 'ppid'> = process,
): WorkerIdentity | undefined {
  const assigned = readAssignment(env);
  if (assigned === undefined) return undefined;
  const { slot, generation, primaryPid } = assigned;
  // A child process of a worker inherits the variable, but has another parent.
  return ppid === primaryPid ? { slot, pid, generation } : undefined;
}

/**
 * Sets the process title for `ps`. Linux truncates a title that is longer than the original command
 * line (`node app.js` has 11 characters). Uses the first title that is not truncated, or none.
 */
export function setTitle(...titles: readonly string[]): void {
  const before = process.title;
  for (const title of titles) {
    process.title = title;
    if (process.title === title) return;
  }
  process.title = before;
}

export const NO_HTTP_SERVER =
  'the app has no HTTP server, so nothing listens on the address passed to bootstrap(); remove the options "port", "host" and "path"';
