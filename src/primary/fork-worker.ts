import cluster, { type Worker } from 'node:cluster';
import { existsSync } from 'node:fs';
import type { Duplex, Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { WORKER_VARIABLE, type WorkerAssignment } from '../contract/process/assignment.js';
import { closeHandle, isOurs } from '../contract/messages.js';
import { ADMIN_TOKEN_VARIABLE } from '../contract/options/bootstrap.js';
import type { ResolvedClusterOptions } from '../contract/options/resolve.js';
import { compileCacheDirectory } from '../contract/process/compile-cache.js';
import type { WorkerIdentity } from '../contract/snapshot/types.js';
import type { ProcessExit } from '../decide/policies/failure.policy.js';
import type { Effect } from '../decide/effect.js';
import type { Program } from './program.js';
import type { Release } from '../decide/cluster-state.js';
import { guardChannel } from './guard-channel.js';
import { workerArguments } from './worker-arguments.js';
import { NO_PID, WorkerHandle, type WorkerProcess } from './worker-handle.js';

/** The events of a forked process. `exit` is always the last event. */
export type ProcessEvent =
  /** `handle` came with a message of this package. The receiver must use or close it. */
  | { readonly type: 'message'; readonly message: unknown; readonly handle?: unknown }
  | { readonly type: 'channel-error'; readonly error: Error }
  /** An invalid message was read, or a write failed. Later messages may be corrupt. */
  | { readonly type: 'channel-broken'; readonly error: unknown }
  | { readonly type: 'exit'; readonly exit: ProcessExit };

/** Delays `exit`, because a dead worker's messages may be read after its exit. */
const LAST_WORDS_MS = 200;

/** The worker's descriptor for the watchdog's pipe, after the three streams and Node's channel. */
const REPORT_DESCRIPTOR = 4;

type Fork = Effect & { readonly type: 'fork' };
type LaunchOptions = Pick<ResolvedClusterOptions, 'watchdog' | 'log'>;

/**
 * Starts the user's script as a worker. Only `exit` marks the worker's end, because Node's
 * 'disconnect' may come before `exit`, after it or never. If the process cannot be started (no
 * descriptors, no memory, no such directory), `exit` is reported immediately.
 */
export function forkWorker(
  effect: Fork,
  program: Program,
  options: LaunchOptions,
  report: (event: ProcessEvent) => void,
): WorkerHandle {
  const { slot, release } = effect;
  const identity = { slot, generation: release.generation };
  let worker: Worker;
  try {
    worker = fork(effect, program.revive(release), options);
  } catch (error) {
    setImmediate(() => failToStart(error as Error, report));
    return new WorkerHandle({ ...identity, pid: NO_PID }, NEVER_STARTED);
  }
  if (worker.process.pid === undefined) {
    // Node reports a failed start only with an 'error' event, and leaves the worker in `cluster.workers`.
    delete cluster.workers![worker.id];
    worker.once('error', (error) => failToStart(error, report));
    worker.on('error', () => {}); // without a listener, a later error would end the primary
    return new WorkerHandle({ ...identity, pid: NO_PID }, NEVER_STARTED);
  }
  return follow(worker, { ...identity, pid: worker.process.pid }, report);
}

function fork(
  { worker, slot, workers, printsBootError }: Fork,
  release: Release,
  { watchdog, log }: LaunchOptions,
): Worker {
  const { execArgv, own } = workerArguments(workers, release.script);
  // Without this check, Node would report that its own executable was not found.
  if (!existsSync(release.cwd))
    throw new Error(`the working directory ${release.cwd} does not exist`);
  cluster.setupPrimary({
    exec: release.script,
    cwd: release.cwd,
    execArgv,
    // Node adds 1 to the primary's inspector port for each worker. From 0 (any port), it would refuse port 1.
    ...(process.debugPort === 0 && { inspectPort: 0 }),
    // The streams are inherited. With pipes, a primary that reads too slowly would block its workers.
    stdio: [
      ...(['inherit', 'inherit', 'inherit', 'ipc'] as const),
      ...(watchdog ? (['pipe'] as const) : []),
    ],
    // With 'advanced', a malformed frame would end the process that reads it
    // (https://github.com/nodejs/node/issues/61312, never fixed in Node 20).
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
    compileCache: compileCacheDirectory(),
    quiet: log.level !== 'debug' && worker !== 1,
  };
  return cluster.fork({
    [WORKER_VARIABLE]: JSON.stringify(assignment),
    [ADMIN_TOKEN_VARIABLE]: undefined, // Node does not pass a variable whose value is undefined
  });
}

function follow(
  worker: Worker,
  identity: WorkerIdentity,
  report: (event: ProcessEvent) => void,
): WorkerHandle {
  // Without this listener, a failed send would throw in the primary.
  worker.on('error', (error) => report({ type: 'channel-error', error }));
  const nodesOwn = worker.listenerCount('message');
  worker.on('message', (message, handle: unknown) => {
    const isHeard =
      worker.listenerCount('message') > nodesOwn + 1 || cluster.listenerCount('message') > 0;
    if (isOurs(message)) return report({ type: 'message', message, handle });
    if (!isHeard) closeHandle(handle);
    report({ type: 'message', message });
  });
  guardChannel(worker.process, (error) => report({ type: 'channel-broken', error }));
  // Node's types allow only a readable or a writable stream, but this pipe is both.
  const stdio = worker.process.stdio as readonly unknown[];
  const reports = stdio[REPORT_DESCRIPTOR] as Duplex | null | undefined;
  if (reports) readLines(reports, (message) => report({ type: 'message', message }));
  const disconnected = new Promise<void>((resolve) => {
    worker.once('disconnect', () => resolve());
  });
  worker.process.once('exit', (code, signal) => {
    void Promise.race([disconnected, delay(LAST_WORDS_MS)]).then(() => {
      reports?.destroy();
      report({ type: 'exit', exit: { code, signal } });
    });
  });
  return new WorkerHandle(identity, {
    isConnected: () => worker.isConnected(),
    send: (message, handle, callback) => worker.send(message as never, handle, callback),
    kill: (signal) => void worker.process.kill(signal),
    askWatchdog: reports ? (line) => void reports.write(line) : undefined,
  });
}

function failToStart(error: Error, report: (event: ProcessEvent) => void): void {
  report({ type: 'channel-error', error });
  report({ type: 'exit', exit: { code: null, signal: null } });
}

const NEVER_STARTED: WorkerProcess = {
  isConnected: () => false,
  send: () => false,
  kill: () => {},
};

/** Maximum length of a line from a worker. Longer lines are dropped. A watchdog's report is only a few kilobytes. */
const MAX_LINE_LENGTH = 256 * 1024;

/**
 * Reads messages from a pipe, one JSON value per line. Drops lines that are not JSON or too long.
 * Does not validate the messages.
 */
export function readLines(pipe: Readable, report: (message: unknown) => void): void {
  let rest = '';
  pipe.setEncoding('utf8');
  pipe.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    if (rest.length > MAX_LINE_LENGTH) rest = '';
    for (const line of lines) {
      const message = parseLine(line);
      if (message !== undefined) report(message);
    }
  });
  // The pipe fails when the worker ends. The worker's `exit` event handles that.
  pipe.on('error', () => {});
}

/** @returns `undefined` for text that is not JSON, and for `null`. */
function parseLine(text: string): unknown {
  try {
    return (JSON.parse(text) as unknown) ?? undefined;
  } catch {
    return undefined;
  }
}
