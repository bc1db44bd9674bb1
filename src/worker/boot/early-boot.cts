// Preloaded into each worker. Reports the error of an app whose main file fails to load. Such an
// app never calls bootstrap(), so without this file only the worker's exit code would be known.
import util = require('node:util');
import workerThreads = require('node:worker_threads');
import type { WorkerAssignment } from '../../contract/ipc/assignment.js' with {
  'resolution-mode': 'import',
};
import type { Envelope } from '../../contract/ipc/envelope.js' with { 'resolution-mode': 'import' };
import type { MAX_TEXT_LENGTH as Limit } from '../../contract/ipc/error-report.js' with {
  'resolution-mode': 'import',
};
import type { WorkerMessage } from '../../contract/ipc/worker-message.js' with {
  'resolution-mode': 'import',
};

/** The protocol's limit for a text, in characters. Longer texts are cut. */
const MAX_TEXT_LENGTH: typeof Limit = 65_536;

/** The key of the global function that ends this watch. `BootWatch` calls it and takes over. */
const HANDOVER = Symbol.for('nestjs-cluster.early-boot');

function onUncaught(thrown: unknown): void {
  // Any value can be thrown. String() throws for some values, inspect() does not.
  const error = thrown instanceof Error ? thrown : new Error(util.inspect(thrown));
  const { name, message, stack, code } = error as NodeJS.ErrnoException;
  const report: WorkerMessage & Envelope = {
    ns: 'nestjs-cluster',
    v: 1,
    type: 'boot-failed',
    phase: 'create',
    error: {
      name: cut(name),
      message: cut(message),
      stack: typeof stack === 'string' ? cut(stack) : undefined,
      code: typeof code === 'string' ? cut(code) : undefined,
    },
  };
  process.send?.(report);
  // If the app has a handler of its own, the handler decides whether the process ends.
  if (process.listenerCount('uncaughtException') > 0) return;
  // Another worker has printed the same error, so exit before Node prints it again.
  if (assignment?.printsBootError === false) {
    process.once('uncaughtException', () => process.exit(1));
  }
}

function cut(text: string): string {
  return String(text).slice(0, MAX_TEXT_LENGTH);
}

const assigned = process.env['NESTJS_CLUSTER_WORKER'];
const assignment = assigned === undefined ? undefined : (JSON.parse(assigned) as WorkerAssignment);

// A worker's threads and child processes inherit its environment, but they are not workers.
if (workerThreads.isMainThread && assignment?.primaryPid === process.ppid) {
  // Removes the arguments that the primary added, because the app would pass them on to its own
  // threads and processes. Node itself has read the arguments already.
  process.execArgv.splice(0, assignment.ownArguments);
  process.once('uncaughtExceptionMonitor', onUncaught);
  Reflect.set(globalThis, HANDOVER, () => process.off('uncaughtExceptionMonitor', onUncaught));
}
