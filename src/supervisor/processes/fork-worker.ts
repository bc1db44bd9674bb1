import cluster, { type Worker } from 'node:cluster';
import { existsSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { WORKER_VARIABLE, type WorkerAssignment } from '../../contract/ipc/assignment.js';
import { closeHandle, isOurs } from '../../contract/ipc/index.js';
import { ADMIN_TOKEN_VARIABLE, type ResolvedClusterOptions } from '../../contract/options/index.js';
import type { WorkerIdentity } from '../../contract/snapshot/index.js';
import type { ProcessExit } from '../decide/policies/exit-cause.policy.js';
import type { Effect } from '../decide/effect.js';
import type { Program, Release } from './release.js';
import { readReports } from '../serve/watchdog-reports.js';
import { RESOURCE_VARIABLE, resourceAttributes } from './resource-attributes.js';
import { followConnections } from './unacknowledged-connections.js';
import { guardChannel } from './guard-channel.js';
import { workerArguments } from './worker-arguments.js';
import { NO_PID, WorkerHandle, type WorkerProcess } from './worker-handle.js';

/** The events of a forked process. Nothing comes after `exit`. */
export type ProcessEvent =
  /** `handle` came with the message. */
  | { readonly type: 'message'; readonly message: unknown; readonly handle?: unknown }
  | { readonly type: 'channel-error'; readonly error: Error }
  /** A read was not a message, or a write failed: the channel may be out of step after it. */
  | { readonly type: 'channel-broken'; readonly error: unknown }
  | { readonly type: 'exit'; readonly exit: ProcessExit };

/** Messages a worker sent before it died may be read after its exit is known. */
const LAST_WORDS_MS = 200;

/** The descriptor of the watchdog's pipe in a worker, after the streams and Node's own channel. */
const REPORT_DESCRIPTOR = 4;

type Fork = Effect & { readonly type: 'fork' };
type LaunchOptions = Pick<ResolvedClusterOptions, 'watchdog' | 'bootLogs'>;

/**
 * Starts the user's script as a worker. `exit` is the only end of it there is:
 * 'disconnect' may come before it, after it or never. A process that cannot be
 * started (no descriptors, no memory, no such directory) is one that exits at
 * once.
 */
export function forkWorker(
  effect: Fork,
  program: Program,
  options: LaunchOptions,
  tell: (event: ProcessEvent) => void,
): WorkerHandle {
  const { slot, patient } = effect;
  const identity = { slot, generation: effect.release.generation };
  let worker: Worker;
  try {
    worker = fork(effect, program.revive(effect.release, patient), options);
  } catch (error) {
    setImmediate(() => failToStart(error as Error, tell));
    return new WorkerHandle({ ...identity, pid: NO_PID }, NEVER_STARTED);
  }
  if (worker.process.pid === undefined) {
    // Node tells by an error alone, and counts the worker among its own for ever.
    delete cluster.workers![worker.id];
    // The first of several errors is the end. Without a listener the next one would end the primary.
    let failed = false;
    worker.on('error', (error) => {
      if (!failed) failToStart(error, tell);
      failed = true;
    });
    return new WorkerHandle({ ...identity, pid: NO_PID }, NEVER_STARTED);
  }
  return follow(worker, { ...identity, pid: worker.process.pid }, tell);
}

function fork(
  { worker, slot, workers, printsBootError }: Fork,
  release: Release,
  { watchdog, bootLogs }: LaunchOptions,
): Worker {
  const { execArgv, own } = workerArguments(workers, release.script);
  const isShown = bootLogs === 'all' || (bootLogs === 'first' && worker === 1);
  // Node would say that it does not find itself.
  if (!existsSync(release.cwd))
    throw new Error(`the working directory ${release.cwd} is not there`);
  cluster.setupPrimary({
    exec: release.script,
    cwd: release.cwd,
    execArgv,
    // Node gives each worker the next port: after 0, "any", that is one that it refuses.
    ...(process.debugPort === 0 && { inspectPort: 0 }),
    // Inherited streams: a pipe that the primary read too slowly would block its workers.
    stdio: [
      ...(['inherit', 'inherit', 'inherit', 'ipc'] as const),
      ...(watchdog ? (['pipe'] as const) : []),
    ],
    // 'json' because a malformed frame of 'advanced' kills the reader
    // (https://github.com/nodejs/node/issues/61312, in Node 20 for good).
    serialization: 'json',
  });
  const assignment: WorkerAssignment = {
    slot,
    generation: release.generation,
    workers,
    primaryPid: process.pid,
    reportTo: watchdog ? REPORT_DESCRIPTOR : undefined,
    ownArguments: own,
    printsBootError,
    quiet: !isShown,
  };
  return cluster.fork({
    [WORKER_VARIABLE]: JSON.stringify(assignment),
    [RESOURCE_VARIABLE]: resourceAttributes(assignment),
    [ADMIN_TOKEN_VARIABLE]: undefined, // Node leaves out what is undefined
  });
}

function follow(
  worker: Worker,
  identity: WorkerIdentity,
  tell: (event: ProcessEvent) => void,
): WorkerHandle {
  // Without this listener a send that fails throws in the primary.
  worker.on('error', (error) => tell({ type: 'channel-error', error }));
  const nodesOwn = worker.listenerCount('message');
  worker.on('message', (message, handle: unknown) => {
    const isHeard =
      worker.listenerCount('message') > nodesOwn + 1 || cluster.listenerCount('message') > 0;
    if (!isOurs(message) && !isHeard) closeHandle(handle);
    tell({ type: 'message', message, handle });
  });
  const recoverConnections =
    cluster.schedulingPolicy === cluster.SCHED_RR ? followConnections(worker) : undefined;
  guardChannel(worker.process, (error) => tell({ type: 'channel-broken', error }));
  // Node's types know five.
  const stdio = worker.process.stdio as readonly unknown[];
  const reports = stdio[REPORT_DESCRIPTOR] as Duplex | null | undefined;
  if (reports) readReports(reports, (message) => tell({ type: 'message', message }));
  const disconnected = new Promise<void>((resolve) => {
    worker.once('disconnect', () => resolve());
  });
  worker.process.once('exit', (code, signal) => {
    void Promise.race([disconnected, delay(LAST_WORDS_MS)]).then(() => {
      reports?.destroy();
      try {
        recoverConnections?.();
      } catch (error) {
        tell({ type: 'channel-error', error: error as Error }); // by way of Node's own internals
      }
      tell({ type: 'exit', exit: { code, signal } });
    });
  });
  return new WorkerHandle(identity, {
    isConnected: () => worker.isConnected(),
    send: (message, handle, callback) => worker.send(message as never, handle, callback),
    kill: (signal) => void worker.process.kill(signal),
    askWatchdog: reports ? (line) => void reports.write(line) : undefined,
  });
}

function failToStart(error: Error, tell: (event: ProcessEvent) => void): void {
  tell({ type: 'channel-error', error });
  tell({ type: 'exit', exit: { code: null, signal: null } });
}

const NEVER_STARTED: WorkerProcess = {
  isConnected: () => false,
  send: () => false,
  kill: () => {},
};
