import { isMainThread } from 'node:worker_threads';
import { ClusterConfigurationError } from '../../contract/errors/cluster.errors.js';

const MAX_NAME_LENGTH = 1_024;

/**
 * Checks a call that takes a lock or a place of a limit.
 *
 * @param what what the call calls its name: `name` or `key`.
 * @throws ClusterConfigurationError for a wrong name, and in a thread, because only the main thread
 * has the connection of its process to the hub.
 */
export function checkCall(call: string, what: string, name: string): void {
  if (typeof name !== 'string' || name.length === 0 || name.length > MAX_NAME_LENGTH) {
    throw new ClusterConfigurationError(
      `${call} was given the ${what} ${JSON.stringify(name)?.slice(0, 40)}; a ${what} has 1 to ${MAX_NAME_LENGTH} characters`,
    );
  }
  if (isMainThread) return;
  throw new ClusterConfigurationError(
    `${call} was called in a thread for the ${what} ${JSON.stringify(name)}, where it would hold in that thread alone; call it where the thread is called, around the call of the @CpuBound() method`,
  );
}
