import { isMainThread } from 'node:worker_threads';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import { show } from '../options.js';

const MAX_NAME_LENGTH = 1_024;

/**
 * Checks the name of a lock or a limit, or a key of a limit.
 *
 * @param what what the call names by it: `name` or `key`.
 * @throws ClusterConfigurationError
 */
export function checkName(call: string, what: string, name: string): void {
  if (typeof name === 'string' && name.length > 0 && name.length <= MAX_NAME_LENGTH) return;
  throw new ClusterConfigurationError(
    `${call}() was given the ${what} ${show(name)}; a ${what} has 1 to ${MAX_NAME_LENGTH} characters`,
  );
}

/** @throws ClusterConfigurationError in a thread: only the main thread has a connection to the hub. */
export function refuseThread(call: string, name: string): void {
  if (isMainThread) return;
  throw new ClusterConfigurationError(
    `${call}(${show(name)}) was called in a thread, where it would hold in that thread alone; call it where the thread is called, around the call of the @CpuBound() method`,
  );
}
