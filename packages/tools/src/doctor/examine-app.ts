import { once } from 'node:events';
import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { NotMeasuredError, oneLine } from '../../contract/errors/index.js';
import type { ExaminationAssignment } from '../../contract/ipc/assignment.js';
import { FINDING_NAMES, silencedBy } from '../../contract/options/warning-options.interface.js';
import { besideThis } from '../../contract/process/own-file.js';
import type { Finding } from '../../observe/findings/finding.js';
import { AppProcess } from '../app/app-process.js';
import type { Outcome, WorkerTask } from '../app/examined-worker.js';
import type { Interruption } from '../app/interruption.js';
import type { DoctorReport } from './report.js';

interface Subject {
  /** The path of the file that calls `bootstrap()`. */
  readonly script: string;
  readonly workers: number | undefined;
  readonly settings: Omit<ExaminationAssignment, 'examiner'>;
}

type Examined = Outcome & { readonly type: 'examined' };

const TYPESCRIPT = /\.[cm]?tsx?$/;
const NO_LOADER =
  '; the file is TypeScript: give the built one, or have Node load it: NODE_OPTIONS="--import tsx"';

const HOST = besideThis('dist/programs/app-host.js')!;
const EXAMINER = pathToFileURL(besideThis('dist/programs/doctor-examiner.js')!).href;

/**
 * Starts an app, examines it, and ends it.
 *
 * @throws NotMeasuredError if the app does not start.
 */
export async function examineApp(
  { script, workers, settings }: Subject,
  interruption: Interruption,
): Promise<DoctorReport> {
  const outcome = await runApp(
    { script, examination: { ...settings, examiner: EXAMINER } },
    // The app sees this number of workers, but only one worker is started.
    workers === undefined ? {} : { CLUSTER_WORKERS: String(workers) },
    interruption,
  );
  return reportOf(outcome, script);
}

/**
 * Starts one worker of an app, waits until it has been examined, and ends all processes that were
 * started.
 *
 * @param environment variables that are set for the app.
 * @throws NotMeasuredError if the app does not start.
 * @throws Error if the process between this process and the worker fails.
 */
async function runApp(
  task: WorkerTask,
  environment: Readonly<Record<string, string>>,
  { started, signal }: Interruption,
): Promise<Examined> {
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
  if (outcome.type === 'examined') return outcome;
  const why = `${oneLine(outcome.why)}${TYPESCRIPT.test(task.script) ? NO_LOADER : ''}`;
  throw new NotMeasuredError(`the app ${why}${app.lastLines}`);
}

function reportOf({ report, warnings }: Examined, script: string): DoctorReport {
  const main = relative(process.cwd(), script);
  const found = report.findings as readonly Finding[];
  const told = warnings
    // The finding 'shutdown-hooks' already reports this warning.
    .filter((text) => !text.startsWith('enableShutdownHooks()'))
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

/** Turns a warning into a finding. The last "; " before its name separates the problem from the remedy. */
export function findingOf(warning: string, main: string): Finding {
  const name = FINDING_NAMES.find((each) => warning.endsWith(`; ${silencedBy(each)}`));
  const text = name === undefined ? warning : warning.slice(0, -`; ${silencedBy(name)}`.length);
  const end = text.lastIndexOf('; ');
  return {
    name: name ?? 'warning',
    level: 'problem',
    where: main,
    problem: end < 0 ? text : text.slice(0, end),
    remedy: end < 0 ? 'read the log of the app' : text.slice(end + 2),
  };
}

/** Makes the paths of files below the working directory relative. */
function shortened(where: string): string {
  return where.replaceAll(`${process.cwd()}/`, '');
}
