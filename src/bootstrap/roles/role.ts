import cluster from 'node:cluster';
import { isMainThread } from 'node:worker_threads';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import { type OwnAssignment, readAssignment } from '../../contract/ipc/assignment.js';

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
    if (!cluster.isWorker || process.ppid !== assigned.primaryPid) return { name: 'bystander' };
    const { slot, generation } = assigned;
    const identity = { slot, generation, pid: process.pid };
    return { name: 'worker', assignment: { ...assigned, identity } };
  }
  if (cluster.isWorker) {
    throw new ClusterConfigurationError(
      'this process is a worker of another cluster (pm2 in cluster mode, or a node:cluster loop of your own), which cannot have workers itself; start the app as one plain process: with pm2 in fork mode',
    );
  }
  return { name: 'parent' };
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
