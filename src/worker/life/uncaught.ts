import { inspect } from 'node:util';

/**
 * Takes errors that nobody caught in place of Node, which would end the process
 * in the middle of every request. An app's own handler decides, as it does without
 * us. Ours is therefore put in only when an error comes and nobody else listens.
 * Node calls the monitor first.
 */
export function catchUncaught(caught: (error: unknown) => void): void {
  process.on('uncaughtExceptionMonitor', () => {
    if (process.listenerCount('uncaughtException') === 0) process.once('uncaughtException', caught);
  });
}

/** Tells of an abort before it happens: from outside it looks as if V8 had run out of memory. */
export function catchAbort(told: (error: Error) => void): void {
  const abort = process.abort.bind(process);
  process.abort = () => {
    told(new Error('process.abort() was called'));
    return abort();
  };
}

/**
 * Throws where nothing catches it, as if the app had.
 *
 * @param prints whether the error is to be printed; asked where the app has no handler for it.
 */
export function throwUncaught(error: unknown, prints: () => boolean): void {
  if (process.listenerCount('uncaughtException') === 0) {
    const print = prints();
    // Node would print first where it is thrown here.
    if (!print || !isWithoutPlace(error)) {
      process.once('uncaughtException', () => {
        if (print) process.stderr.write(`${inspect(error)}\n`);
      });
    }
  }
  process.nextTick(() => {
    throw error;
  });
}

/** Node alone knows the place of a syntax error in a module, and shows it when it prints the error itself. */
function isWithoutPlace(error: unknown): boolean {
  return (
    error instanceof SyntaxError && /^SyntaxError.*\n\s+at .*\(node:/.test(String(error.stack))
  );
}
