import { once } from 'node:events';
import { resolve } from 'node:path';
import { AppProcess } from '../app/app-process.js';
import { ToolError } from '../output.js';
import type { Finding } from './finding.js';
import type { Examination } from './preload.js';
import { type DoctorReport, findingOf } from './report.js';

interface Subject {
  /** The file that calls `bootstrap()`. */
  readonly main: string;
  readonly workers?: number | undefined;
  readonly maxConnections?: number | undefined;
}

/** Maximum time for the app to start. Some apps wait forever for a database. */
const READY_MS = 60_000;

/**
 * Starts an app in one process, examines it, and ends all started processes.
 *
 * @throws ToolError if the app does not start.
 */
export async function examineApp(
  subject: Subject,
  interrupted: AbortSignal,
): Promise<DoctorReport> {
  let examination: Examination | undefined;
  const examined = new AbortController();
  const app = new AppProcess(
    [process.execPath, '--import', preloadOf(subject), resolve(subject.main)],
    // The app reads this number but starts no workers.
    subject.workers === undefined ? {} : { CLUSTER_WORKERS: String(subject.workers) },
    (message) => {
      examination = message as Examination;
      examined.abort();
    },
  );
  const late = AbortSignal.timeout(READY_MS);
  try {
    const over = AbortSignal.any([examined.signal, app.ended, interrupted, late]);
    if (!over.aborted) await once(over, 'abort');
  } finally {
    await app.end();
  }
  interrupted.throwIfAborted();
  if (examination !== undefined) return reportOf(examination, subject.main);
  if (!late.aborted) throw app.failure;
  throw new ToolError(
    `the app did not start within ${READY_MS / 1_000} s or did not call bootstrap() from nestjs-cluster${app.lastLines}`,
    70,
  );
}

/** The URL of the file that Node loads before the app. This file is bundled into `dist`. */
function preloadOf({ maxConnections }: Subject): string {
  const url = new URL('programs/doctor-preload.js', import.meta.url);
  url.searchParams.set('parent', String(process.pid));
  if (maxConnections !== undefined) {
    url.searchParams.set('max-connections', String(maxConnections));
  }
  return url.href;
}

function reportOf(
  { findings, warnings, ignored, workers }: Examination,
  main: string,
): DoctorReport {
  const all: Finding[] = [...findings, ...warnings.map((text) => findingOf(text, main))];
  const shown = all
    .filter(({ name }) => !ignored.includes(name))
    // Paths below the working directory are shown relative to it.
    .map(({ where, ...rest }) => ({ ...rest, where: where.replaceAll(`${process.cwd()}/`, '') }));
  return { main, workers, findings: shown, ignored };
}
