import {
  cutText,
  type ErrorReport,
  inspected,
  reportError,
} from '../../contract/errors/error-report.js';
import { warningLine } from '../../contract/log/log.js';
import type { ResolvedLogOptions } from '../../contract/options/resolve.js';
import type { WorkerIdentity } from '../../contract/snapshot/types.js';

/**
 * Calls `caught` for uncaught errors, so that Node does not exit and abort all requests. An app's own
 * 'uncaughtException' handler takes precedence. So our handler is added only when an error occurs and
 * the app has no handler: Node emits 'uncaughtExceptionMonitor' before it looks for handlers.
 *
 * @returns a function that removes the listener.
 */
export function catchUncaught(caught: (error: unknown) => void): () => void {
  const catchNext = (): void => {
    if (process.listenerCount('uncaughtException') === 0) process.once('uncaughtException', caught);
  };
  process.on('uncaughtExceptionMonitor', catchNext);
  return () => void process.off('uncaughtExceptionMonitor', catchNext);
}

/** Reports an uncaught error. Adds its causes and other properties to the stack, so that the log shows them. */
export function reportUncaught(thrown: unknown): ErrorReport {
  const report = reportError(thrown);
  return report.stack === undefined ? report : { ...report, stack: cutText(inspected(thrown)) };
}

/**
 * The text a worker writes for an uncaught error: the whole error, or one line in a JSON log.
 *
 * @param isReported whether the primary logs the error. If so, a JSON log needs no second line.
 */
export function uncaughtText(
  error: unknown,
  log: Pick<ResolvedLogOptions, 'format' | 'level'>,
  worker: WorkerIdentity,
  isReported: boolean,
): string {
  if (log.format !== 'json' || log.level === 'silent') return `${inspected(error)}\n`;
  if (isReported) return '';
  const event = { message: 'uncaught error', worker, error: reportUncaught(error) };
  return warningLine(log, event, process.stderr);
}

/**
 * Throws an uncaught error, as if the app had thrown it.
 *
 * @param print whether to print the error if the app has no handler.
 */
export function throwUncaught(error: unknown, print: boolean): void {
  if (process.listenerCount('uncaughtException') === 0) {
    // Node would also print the source line of the `throw` below.
    if (!print || !isSyntaxErrorOfModule(error)) {
      process.once('uncaughtException', () => {
        if (print) process.stderr.write(`${inspected(error)}\n`);
      });
    }
  }
  process.nextTick(() => {
    throw error;
  });
}

/** The stack of such an error does not name the module. Only Node prints the name. */
function isSyntaxErrorOfModule(error: unknown): boolean {
  return (
    error instanceof SyntaxError && /^SyntaxError.*\n\s+at .*\(node:/.test(String(error.stack))
  );
}
