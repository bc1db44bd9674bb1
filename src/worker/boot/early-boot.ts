// Preloaded into each worker. Turns the compile cache on. Reports the error of an app whose main file
// fails to load: such an app never calls bootstrap(), so only the worker's exit code would be known.
import { inspect } from 'node:util';
import { isMainThread } from 'node:worker_threads';
import { readAssignment } from '../../contract/process/assignment.js';
import type { Envelope, WorkerMessage } from '../../contract/messages.js';
import { reportError } from '../../contract/errors/error-report.js';
import { openCompileCache } from '../../contract/process/compile-cache.js';

/** The key of the global function that ends this watch. `BootWatch` calls it and takes over. */
const HANDOVER = Symbol.for('nestjs-cluster.early-boot');

function onUncaught(thrown: unknown): void {
  // Any value can be thrown. String() throws for some values, inspect() does not.
  const error = thrown instanceof Error ? thrown : new Error(inspect(thrown));
  const report: WorkerMessage & Envelope = {
    ns: 'nestjs-cluster',
    v: 1,
    type: 'boot-failed',
    error: reportError(error),
  };
  process.send?.(report);
  // If the app has a handler of its own, the handler decides whether the process ends.
  if (process.listenerCount('uncaughtException') > 0) return;
  // Another worker has printed the same error, so exit before Node prints it again.
  if (assignment?.printsBootError === false) {
    process.once('uncaughtException', () => process.exit(1));
  }
}

const assignment = readAssignment(process.env);

// A worker's threads and child processes inherit its environment, but they are not workers.
if (isMainThread && assignment?.primaryPid === process.ppid) {
  // Removes the arguments that the primary added, because the app would pass them on to its own
  // threads and processes. Node itself has read the arguments already.
  process.execArgv.splice(0, assignment.ownArguments);
  if (assignment.compileCache !== undefined) openCompileCache(assignment.compileCache);
  process.once('uncaughtExceptionMonitor', onUncaught);
  Reflect.set(globalThis, HANDOVER, () => process.off('uncaughtExceptionMonitor', onUncaught));
}
