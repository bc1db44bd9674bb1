import type { INestApplicationContext } from '@nestjs/common';
import type { FindingName, ResolvedClusterOptions } from '../contract/options/index.js';
import type { AppView } from '../observe/findings/app-view.js';
import type { Finding } from '../observe/findings/checks.js';
import type { WorkerLink } from '../worker/link/worker-link.js';
import type { AppFactory, StandaloneRuntime } from './cluster-runtime.interface.js';

/** Examines an app that listens. */
export type Examine = (app: AppView, start: ExaminedStart) => void;

/** The result of an app's start. */
interface ExaminedStart {
  readonly findings: readonly Finding[];
  readonly warnings: readonly string[];
  /** The option `warnings.ignore`. */
  readonly ignored: readonly FindingName[];
  /** The number of workers that the options ask for. */
  readonly workers: number;
}

/** Runs the app in this process on a free port, and passes it to `examine` when it listens. */
export async function runExamined(
  createApp: AppFactory,
  options: ResolvedClusterOptions,
  examine: Examine,
): Promise<StandaloneRuntime<INestApplicationContext>> {
  const { runStandalone } = await import('./roles/run-standalone.js');
  const { findingsOf } = await import('../observe/findings/checks.js');
  const { viewOf } = await import('../observe/findings/app-view.js');
  const warnings: string[] = [];
  const runtime = await runStandalone(createApp, {
    ...options,
    workers: 0,
    address: { kind: 'tcp', port: 0, host: '127.0.0.1' },
    admin: undefined,
    warnings: { shown: true, ignore: [] },
    on: { warning: ({ message }) => void warnings.push(message) },
  });
  const app = viewOf(runtime.app);
  const {
    workers,
    warnings: { ignore: ignored },
  } = options;
  examine(app, { findings: findingsOf(app), warnings, ignored, workers: Math.max(workers, 1) });
  return runtime;
}

/**
 * The slot of the only worker that warns, because all workers would log the same warnings. Two or
 * more workers always have a slot 1, even after scaling.
 */
const WARNING_SLOT = 1;

/** Warns if the app does not work correctly in several workers. */
export async function warnOfFindings(
  app: object,
  link: Pick<WorkerLink, 'identity' | 'warn'>,
  { shown, ignore }: ResolvedClusterOptions['warnings'],
): Promise<void> {
  if (!shown || link.identity.slot !== WARNING_SLOT) return;
  const { startWarnings } = await import('../observe/findings/checks.js');
  for (const line of startWarnings(app, ignore)) link.warn(line);
}
