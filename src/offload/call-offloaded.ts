import { adviseRetry } from './admission/advise-retry.js';
import { captureContexts } from './task/carry-context.js';
import { TaskRejectedException } from './offload.exceptions.js';
import type { Submitter } from './admission/remote-runner.js';
import type { Task } from './task/task.js';
import type { CallTrace } from './task/trace-context.js';
import type { WaitingClient } from './admission/waiting-client.js';

/** Makes one call of a `@CpuBound()` method, for the waiting client of its asynchronous context. */
export async function callOffloaded(
  submitter: Submitter,
  task: Task,
  args: unknown[],
  client: WaitingClient,
  trace?: CallTrace,
): Promise<unknown> {
  const response = client.current;
  try {
    const watch = task.abortOnDisconnect && response ? client.watch(response) : undefined;
    const result = await submitter.submit(task, args, captureContexts(), watch, trace);
    trace?.completed();
    return result;
  } catch (error) {
    trace?.failed(error);
    if (error instanceof TaskRejectedException && response !== undefined) {
      adviseRetry(response, error.retryAfterSeconds);
    }
    throw error;
  }
}
