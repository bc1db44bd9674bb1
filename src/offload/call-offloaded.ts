import { adviseRetry } from './admission/advise-retry.js';
import { captureContexts } from './task/carry-context.js';
import { TaskRejectedException } from './offload.exceptions.js';
import type { Submitter } from './admission/remote-runner.js';
import type { Task } from './task/task.js';
import type { WaitingClient } from './admission/waiting-client.js';

/** Makes one call of a `@CpuBound()` method, for the waiting client of its asynchronous context. */
export async function callOffloaded(
  submitter: Submitter,
  task: Task,
  args: unknown[],
  client: WaitingClient,
): Promise<unknown> {
  const response = client.current;
  try {
    const watch = task.abortOnDisconnect && response ? client.watch(response) : undefined;
    return await submitter.submit(task, args, captureContexts(), watch);
  } catch (error) {
    if (error instanceof TaskRejectedException && response !== undefined) {
      adviseRetry(response, error.retryAfterSeconds);
    }
    throw error;
  }
}
