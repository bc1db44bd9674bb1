import type { INestApplicationContext } from '@nestjs/common';
import type { OwnAssignment } from '../contract/ipc/assignment.js';
import type { ResolvedClusterOptions } from '../contract/options/index.js';
import type { WorkerLink } from '../worker/link/worker-link.js';
import type { AppFactory } from './cluster-runtime.interface.js';

/** Gets the app once it serves, and what its cluster would be. */
export type Examine = (
  app: object,
  facts: {
    /** The number of workers that the program would start. */
    readonly workers: number;
    /** The lines that the start of its cluster would log. */
    readonly warnings: readonly string[];
    /** The names in `warnings.ignore`. */
    readonly ignored: readonly string[];
  },
) => Promise<void>;

/** Runs the app in this process, on a free port of the loopback address, has it examined, and ends the process. */
export async function runExamined(
  createApp: AppFactory,
  options: ResolvedClusterOptions,
  examine: Examine,
): Promise<never> {
  const { runStandalone } = await import('./roles/run-standalone.js');
  const { startWarnings } = await import('../observe/findings/start-warnings.js');
  const runtime = await runStandalone(createApp, {
    ...options,
    address: { kind: 'tcp', port: 0, host: '127.0.0.1' },
    addressGiven: false,
    admin: undefined,
    warnings: { shown: false, ignore: [] },
  });
  const { workers, warnings } = options;
  const app = runtime.app as INestApplicationContext & object;
  const { ignore: ignored } = warnings;
  await examine(app, { workers, warnings: startWarnings(app, ignored, workers), ignored });
  await runtime.shutdown();
  process.exit();
}

/**
 * The slot of the only worker that warns, because all workers would log the same warnings. Two or
 * more workers always have a slot 1, even after scaling.
 */
const WARNING_SLOT = 1;

/** Logs a line for each thing in the app that does not fit several workers, in one worker of the cluster. */
export async function warnAtStart(
  app: object,
  link: WorkerLink,
  { warnings }: ResolvedClusterOptions,
  { identity: { slot }, workers }: OwnAssignment,
): Promise<void> {
  if (!warnings.shown || slot !== WARNING_SLOT) return;
  const { startWarnings } = await import('../observe/findings/start-warnings.js');
  const known = Math.max(workers, slot + 1);
  for (const line of startWarnings(app, warnings.ignore, known)) link.warn(line);
}
