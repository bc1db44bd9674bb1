// Preloaded into each worker: an app whose main file does not even load never gets to bootstrap(),
// and only its exit code would be known.
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

/** As the protocol has it. */
const MAX_TEXT_LENGTH: typeof Limit = 65_536;

/** The worker's agent is there: it watches from now on. */
const HANDOVER = Symbol.for('nestjs-cluster.early-boot');

function onUncaught(thrown: unknown): void {
  // Anything can be thrown, also what String() cannot show.
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
  // The app's own handler decides.
  if (process.listenerCount('uncaughtException') > 0) return;
  // Another worker has printed it.
  if (assignment?.printsBootError === false) {
    process.once('uncaughtException', () => process.exit(1));
  }
}

function cut(text: string): string {
  return String(text).slice(0, MAX_TEXT_LENGTH);
}

const assigned = process.env['NESTJS_CLUSTER_WORKER'];
const assignment = assigned === undefined ? undefined : (JSON.parse(assigned) as WorkerAssignment);

// The environment is inherited by the threads and the processes of a worker: those are not one.
if (workerThreads.isMainThread && assignment?.primaryPid === process.ppid) {
  // Node has read them: what the app passes on to threads and processes of its own is the app's.
  process.execArgv.splice(0, assignment.ownArguments);
  process.once('uncaughtExceptionMonitor', onUncaught);
  Reflect.set(globalThis, HANDOVER, () => process.off('uncaughtExceptionMonitor', onUncaught));
}
