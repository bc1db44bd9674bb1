import cluster from 'node:cluster';
import { isMainThread } from 'node:worker_threads';
import { ClusterConfigurationError } from '../errors/index.js';
import { readAssignment } from '../ipc/assignment.js';
import type { Assignment } from '../worker/assignment.js';

/** What `bootstrap()` has to be in this process. */
export type Role =
  | { readonly name: 'parent' }
  | { readonly name: 'worker'; readonly assignment: Assignment }
  | { readonly name: 'bystander' };

/**
 * Which role this process has. `cluster.isPrimary` alone would fork-bomb: it is
 * true in every thread, and in every process that a worker starts.
 *
 * @throws ClusterConfigurationError in a worker of somebody else's cluster.
 */
export function detectRole(env: NodeJS.ProcessEnv = process.env): Role {
  if (!isMainThread) return { name: 'bystander' };
  const assigned = readAssignment(env);
  if (assigned !== undefined) {
    const { slot, generation, ...assignment } = assigned;
    return cluster.isWorker && process.ppid === assignment.primaryPid
      ? {
          name: 'worker',
          assignment: {
            identity: { slot, generation, pid: process.pid },
            ...assignment,
          },
        }
      : { name: 'bystander' };
  }
  if (cluster.isWorker) {
    throw new ClusterConfigurationError(
      'this process is a worker of another cluster (pm2 in cluster mode, or a node:cluster loop of your own), which cannot have workers itself; start the app as one plain process: with pm2 in fork mode',
    );
  }
  return { name: 'parent' };
}
