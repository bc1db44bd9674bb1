import { monotonicMs } from '../../contract/process/monotonic-ms.js';
import type { CarriedContexts } from './carry-context.js';
import { runBody } from './run-body.js';
import type { RunResult } from './runner.interface.js';
import { currentTracing, isTraced, type TracedTask } from './trace-context.js';

/**
 * Runs the body of a task in its thread. If its caller traces it, the result has the times of the
 * run. If a collector traces this thread, the run has a span here. Never rejects.
 */
export async function runTraced(
  task: TracedTask,
  body: () => unknown,
  contexts: CarriedContexts | undefined,
): Promise<RunResult> {
  if (!isTraced(contexts)) return runBody(task.name, body, contexts);
  const tracing = currentTracing();
  const begunAt = monotonicMs();
  const within = tracing && (<R>(run: () => Promise<R>) => tracing.run(task, run));
  const result = await runBody(task.name, body, contexts, within);
  return { ...result, ran: { begunAt, endedAt: monotonicMs(), hasSpan: tracing !== undefined } };
}
