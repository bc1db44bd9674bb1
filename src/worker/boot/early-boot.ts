// Preloaded into each worker. Enables the compile cache. Reports the error if the app's main file
// fails to load: bootstrap() is then never called, and the primary would see only an exit code.
import { inspect } from 'node:util';
import { isMainThread } from 'node:worker_threads';
import { readAssignment } from '../../contract/process/assignment.js';
import type { Envelope, WorkerMessage } from '../../contract/messages.js';
import { reportError } from '../../contract/errors/error-report.js';
import { openCompileCache } from '../../contract/process/compile-cache.js';

/** The key of the global function that removes the error listener. `BootWatch` calls it. */
const HANDOVER = Symbol.for('nestjs-cluster.early-boot');

function onUncaught(thrown: unknown): void {
  // Any value can be thrown. String() fails for some values, inspect() does not.
  const error = thrown instanceof Error ? thrown : new Error(inspect(thrown));
  const report: WorkerMessage & Envelope = {
    ns: 'nestjs-cluster',
    v: 1,
    type: 'boot-failed',
    error: reportError(error),
  };
  process.send?.(report);
  // If the app has its own handler, the handler decides whether the process ends.
  if (process.listenerCount('uncaughtException') > 0) return;
  // Another worker has printed the same error, so exit before Node prints it again.
  if (assignment?.printsBootError === false) {
    process.once('uncaughtException', () => process.exit(1));
  }
}

const assignment = readAssignment(process.env);

// A worker's threads and child processes inherit its environment, but they are not workers.
if (isMainThread && assignment?.primaryPid === process.ppid) {
  // The app's own threads and child processes would inherit the arguments that the primary added.
  // Node has already read them.
  process.execArgv.splice(0, assignment.ownArguments);
  if (assignment.compileCache !== undefined) openCompileCache(assignment.compileCache);
  process.once('uncaughtExceptionMonitor', onUncaught);
  Reflect.set(globalThis, HANDOVER, () => process.off('uncaughtExceptionMonitor', onUncaught));
}
