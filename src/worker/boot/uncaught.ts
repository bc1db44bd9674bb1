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
 * Handles uncaught errors, for which Node would end the process immediately, with all its requests. If
 * the app has its own handler, the app's handler decides. So our handler is added only when an error
 * occurs and the app has no handler. Node emits 'uncaughtExceptionMonitor' before that decision.
 *
 * @returns a function that ends this.
 */
export function catchUncaught(caught: (error: unknown) => void): () => void {
  const catchNext = (): void => {
    if (process.listenerCount('uncaughtException') === 0) process.once('uncaughtException', caught);
  };
  process.on('uncaughtExceptionMonitor', catchNext);
  return () => void process.off('uncaughtExceptionMonitor', catchNext);
}

/** Reports an uncaught error. The stack also has the causes and all other properties, because nothing else shows them. */
export function reportUncaught(thrown: unknown): ErrorReport {
  const report = reportError(thrown);
  return report.stack === undefined ? report : { ...report, stack: cutText(inspected(thrown)) };
}

/**
 * The text that a worker writes for an uncaught error: the error in full or, in a log of JSON, one line.
 *
 * @param isReported whether the primary logs the error. A log of JSON then has its line already.
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
 * Throws an error that nothing catches, as if the app had thrown it.
 *
 * @param prints returns whether to print the error. Called only if the app has no handler.
 */
export function throwUncaught(error: unknown, prints: () => boolean): void {
  if (process.listenerCount('uncaughtException') === 0) {
    const print = prints();
    // Prints the error here, because Node would print the line of the `throw` below first.
    if (!print || !isWithoutPlace(error)) {
      process.once('uncaughtException', () => {
        if (print) process.stderr.write(`${inspected(error)}\n`);
      });
    }
  }
  process.nextTick(() => {
    throw error;
  });
}

/** Whether only Node knows the place of the error, as with a syntax error in a module. */
function isWithoutPlace(error: unknown): boolean {
  return (
    error instanceof SyntaxError && /^SyntaxError.*\n\s+at .*\(node:/.test(String(error.stack))
  );
}
