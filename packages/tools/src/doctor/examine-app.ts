import { once } from 'node:events';
import { relative } from 'node:path';
import { AppProcess } from '../app/app-process.js';
import type { Interruption } from '../app/interruption.js';
import { oneLine, ToolError } from '../output.js';
import { type Examined, type Finding, SETTINGS_VARIABLE, type Settings } from './finding.js';

/** The doctor's report on an app. */
export interface DoctorReport {
  /** The path of the file that was started, from the working directory. */
  readonly main: string;
  readonly workers: number;
  readonly findings: readonly Finding[];
  readonly ignored: readonly string[];
}

/** How long the app may take to start. Some apps wait for ever for a database. */
const READY_MS = 60_000;

const PRELOAD = new URL('./programs/doctor-preload.js', import.meta.url).href;

const TYPESCRIPT = /\.[cm]?tsx?$/;
const NO_LOADER =
  '; the file is TypeScript: give the built one, or have Node load it: NODE_OPTIONS="--import tsx"';

/**
 * Starts an app as one process, examines it, and ends it.
 *
 * @throws ToolError if the app does not start.
 */
export async function examineApp(
  script: string,
  { workers, ...settings }: Settings & { readonly workers: number | undefined },
  { started, signal }: Interruption,
): Promise<DoctorReport> {
  let examined: Examined | undefined;
  const app = new AppProcess(
    [process.execPath, '--import', PRELOAD, script],
    {
      [SETTINGS_VARIABLE]: JSON.stringify(settings),
      ...(workers !== undefined && { CLUSTER_WORKERS: String(workers) }),
    },
    (message) => {
      if (Array.isArray((message as Examined | null)?.findings)) examined = message as Examined;
    },
  );
  started.add(app);
  const late = AbortSignal.timeout(READY_MS);
  try {
    const over = AbortSignal.any([app.ended, signal, late]);
    if (!over.aborted) await once(over, 'abort');
  } finally {
    await app.end();
    started.delete(app);
  }
  signal.throwIfAborted();
  if (examined !== undefined) return reportOf(examined, relative(process.cwd(), script));
  const hint = TYPESCRIPT.test(script) ? NO_LOADER : '';
  if (!late.aborted) throw new ToolError(`${app.failure.message}${hint}`);
  throw new ToolError(
    `the app was not ready, or has not called bootstrap() of nestjs-cluster, within ${READY_MS / 1_000} s${hint}${app.lastLines}`,
  );
}

function reportOf({ workers, warnings, findings, ignored }: Examined, main: string): DoctorReport {
  const all = [...warnings.map((line) => findingOf(line, main)), ...findings];
  return {
    main,
    workers,
    ignored,
    findings: all
      .filter(({ name }) => !ignored.includes(name))
      .map((finding) => ({
        ...finding,
        where: oneLine(finding.where.replaceAll(`${process.cwd()}/`, '')),
        problem: oneLine(finding.problem),
      })),
  };
}

/** A warning of the start as a finding: `<problem>; <remedy>; warnings: { ignore: ['<name>'] } …`. */
export function findingOf(warning: string, main: string): Finding {
  const [, text = warning, name = 'warning'] =
    /^(.*); warnings: .*\['([\w-]+)'\]/.exec(warning) ?? [];
  const [problem = '', ...remedy] = text.split('; ');
  return { name, level: 'problem', where: main, problem, remedy: remedy.join('; ') };
}

/** The report as text: each finding's name and place, with its problem and remedy below. */
export function pageOf({ main, workers, findings, ignored }: DoctorReport): string {
  const rows = findings.map(
    ({ name, level, where, problem, remedy }) =>
      `${level}  ${name}  ${where}\n  ${problem}\n  -> ${remedy}\n\n`,
  );
  const problems = findings.filter(({ level }) => level === 'problem').length;
  const left = ignored.length === 0 ? '' : `; left out: ${ignored.join(', ')}`;
  const notes = findings.length - problems;
  return `${rows.join('')}${main} with ${workers} workers: ${problems} problems, ${notes} notes${left}\n`;
}
