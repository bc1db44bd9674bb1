import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HostTask } from './app/host.js';
import type { Outcome } from './app/worker.js';
import { NotMeasuredError, oneLine } from '../../contract/errors/index.js';
import type { Finding } from '../../observe/findings/finding.js';
import { AppProcess } from '../app/app-process.js';
import type { Interruption } from '../app/interruption.js';
import type { DoctorReport } from './report.js';

interface Subject {
  /** The path of the file that calls `bootstrap()`. */
  readonly script: string;
  readonly workers: number | undefined;
  readonly settings: HostTask['settings'];
}

const HOST = fileURLToPath(new URL('./app/host.js', import.meta.url));

const TYPESCRIPT = /\.[cm]?tsx?$/;
const NO_LOADER =
  '; the file is TypeScript: give the built one, or have Node load it: NODE_OPTIONS="--import tsx"';

/**
 * Starts an app, examines it, and ends it and all processes that it has started.
 *
 * @throws NotMeasuredError if the app does not start.
 */
export async function examineApp(
  { script, workers, settings }: Subject,
  { started, signal }: Interruption,
): Promise<DoctorReport> {
  let outcome: Outcome | undefined;
  const task: HostTask = { script, settings };
  const app = new AppProcess(
    [process.execPath, HOST, JSON.stringify(task)],
    // The app sees this number of workers, but only one worker is started.
    workers === undefined ? {} : { CLUSTER_WORKERS: String(workers) },
    (message) => (outcome = message as Outcome),
  );
  started.add(app);
  try {
    await aborted(AbortSignal.any([app.ended, signal]));
  } finally {
    await app.end();
    started.delete(app);
  }
  signal.throwIfAborted();
  if (outcome === undefined) throw app.failure;
  if (outcome.type === 'failed') {
    const why = `${oneLine(outcome.why)}${TYPESCRIPT.test(script) ? NO_LOADER : ''}`;
    throw new NotMeasuredError(`the app ${why}${app.lastLines}`);
  }
  return reportOf(outcome, script);
}

function reportOf(
  { report, warnings }: Outcome & { type: 'examined' },
  script: string,
): DoctorReport {
  const main = relative(process.cwd(), script);
  const found = report.findings as readonly Finding[];
  const hooks = found.some(({ name }) => name === 'shutdown-hooks');
  const told = warnings
    // The finding 'shutdown-hooks' already reports this warning.
    .filter((text) => !(hooks && text.startsWith('enableShutdownHooks()')))
    .map((text) => findingOf(text, main));
  return {
    main,
    workers: report.workers,
    findings: [...found, ...told]
      .filter(({ name }) => !report.ignored.includes(name))
      .map((finding): Finding => ({
        ...finding,
        where: oneLine(shortened(finding.where)),
        problem: oneLine(finding.problem),
        remedy: oneLine(finding.remedy),
      })),
    ignored: report.ignored,
  };
}

/** Turns a warning into a finding. The last "; " of the warning separates the problem from the remedy. */
function findingOf(warning: string, main: string): Finding {
  const end = warning.lastIndexOf('; ');
  return {
    name: 'warning',
    level: 'problem',
    where: main,
    problem: end < 0 ? warning : warning.slice(0, end),
    remedy: end < 0 ? 'see the page' : warning.slice(end + 2),
    docs: 'docs/troubleshooting.md',
  };
}

/** Makes the paths of files below the working directory relative. */
function shortened(where: string): string {
  return where.replaceAll(`${process.cwd()}/`, '');
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
