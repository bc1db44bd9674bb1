import { adviseRetry } from './advise-retry.js';
import { captureContexts } from './carry-context.js';
import type { Dispatcher } from './dispatcher.js';
import { TaskRejectedException } from './offload.exceptions.js';
import type { Task } from './task.js';
import type { WaitingClient } from './waiting-client.js';

/** One call of a `@CpuBound()` method: for whoever waits, in the context that it is made in. */
export async function callOffloaded(
  dispatcher: Dispatcher,
  task: Task,
  args: unknown[],
  client: WaitingClient,
): Promise<unknown> {
  const response = client.current;
  try {
    const watch = task.abortOnDisconnect && response ? client.watch(response) : undefined;
    return await dispatcher.submit(task, args, captureContexts(), watch);
  } catch (error) {
    if (error instanceof TaskRejectedException && response !== undefined) {
      adviseRetry(response, error.retryAfterSeconds);
    }
    throw error;
  }
}
