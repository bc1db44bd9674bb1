/**
 * Takes errors that nobody caught in place of Node, which would end the process
 * in the middle of every request. Where the app has a handler of its own, that
 * decides, as without us: so ours is put in only when an error comes and nobody
 * else listens; the monitor is called first.
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

/** Throws where nothing catches it, as if the app had. */
export function throwUncaught(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}
