import { once } from 'node:events';
import { NotMeasuredError, oneLine } from '../../contract/errors/index.js';
import { besideThis } from '../../contract/process/own-file.js';
import { AppProcess } from './app-process.js';
import type { Outcome, WorkerTask } from './examined-worker.js';
import type { Interruption } from './interruption.js';

/** How long the app may take to start. */
const READY_MS = 60_000;

const TYPESCRIPT = /\.[cm]?tsx?$/;
const NO_LOADER =
  '; the file is TypeScript: give the built one, or have Node load it: NODE_OPTIONS="--import tsx"';

export type Examined = Outcome & { readonly type: 'examined' };

const HOST = besideThis('dist/programs/app-host.js')!;

/**
 * Starts one worker of an app, waits for the outcome of the start, and ends all processes that were
 * started.
 *
 * @param environment variables that are set for the app.
 * @returns the outcome, and the last lines of the app's output for an error message.
 * @throws Error if the process between this process and the worker fails.
 */
export async function runHost(
  task: WorkerTask,
  environment: Readonly<Record<string, string>>,
  { started, signal }: Interruption,
): Promise<{ outcome: Outcome; lastLines: string }> {
  let outcome: Outcome | undefined;
  const app = new AppProcess(
    [process.execPath, HOST, JSON.stringify(task)],
    environment,
    (message) => (outcome = message as Outcome),
  );
  started.add(app);
  try {
    const over = AbortSignal.any([app.ended, signal]);
    if (!over.aborted) await once(over, 'abort');
  } finally {
    await app.end();
    started.delete(app);
  }
  signal.throwIfAborted();
  if (outcome === undefined) throw app.failure;
  return { outcome, lastLines: app.lastLines };
}

/**
 * Like {@link runHost}, for an app that has to start.
 *
 * @throws NotMeasuredError if the app does not start within a minute.
 */
export async function runReadyApp(
  task: Omit<WorkerTask, 'readyMs'>,
  environment: Readonly<Record<string, string>>,
  interruption: Interruption,
): Promise<Examined> {
  const { outcome, lastLines } = await runHost(
    { ...task, readyMs: READY_MS },
    environment,
    interruption,
  );
  if (outcome.type === 'examined') return outcome;
  const why = `${oneLine(outcome.why)}${TYPESCRIPT.test(task.script) ? NO_LOADER : ''}`;
  throw new NotMeasuredError(`the app ${why}${lastLines}`);
}
