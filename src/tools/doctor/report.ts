import type { FindingName } from '../../contract/options/index.js';
import type { Finding } from '../../observe/findings/finding.js';

/** The doctor's report on an app. */
export interface DoctorReport {
  /** The path of the file that was started, from the working directory. */
  readonly main: string;
  /** The number of workers that the findings assume. */
  readonly workers: number;
  readonly findings: readonly Finding[];
  /** The names in the app's option `doctor.ignore`. Findings with these names are left out. */
  readonly ignored: readonly string[];
}

/** The page of docs/ that explains a finding. */
const PAGES: Readonly<Record<FindingName, string>> = {
  'scheduled-jobs': 'scheduled-jobs.md',
  throttler: 'shared-state.md',
  cache: 'shared-state.md',
  sessions: 'shared-state.md',
  'socket-io-adapter': '../packages/socket.io/README.md',
  'socket-io-polling': '../packages/socket.io/README.md',
  'in-process-events': 'hub.md#events',
  'web-socket-broadcast': 'websockets.md',
  'self-restart': 'shared-state.md#settings-that-the-app-changes',
  'database-pool': 'database-pools.md',
  'schema-synchronization': 'shared-state.md',
  'own-health': 'health.md',
  'own-metrics': 'metrics.md',
  'keep-alive': 'doctor.md#keep-alive',
  memory: 'number-of-workers.md',
  'signal-listener': 'shutdown-hooks.md',
  'shutdown-hooks': 'shutdown-hooks.md',
  'force-close-connections': 'shutdown-hooks.md',
  'cpu-bound-inline': 'cpu-bound-methods.md',
  'cpu-bound-threads': 'cpu-bound-methods.md#threads',
  warning: 'reference/messages-run.md',
};

/** The report as text: each finding's name and place, with its problem, remedy and page below. */
export function pageOf({ main, workers, findings, ignored }: DoctorReport): string {
  const problems = findings.filter(({ level }) => level === 'problem').length;
  const width = Math.max(...findings.map(({ name }) => name.length), 0);
  const indent = ' '.repeat('problem  '.length + width + 2);
  const rows = findings.map(({ name, level, where, problem, remedy }) =>
    [
      `${level.padEnd('problem'.length)}  ${name.padEnd(width)}  ${where}`,
      ...[problem, `-> ${remedy}`, `see docs/${PAGES[name]}`].map((text) => indent + text),
    ].join('\n'),
  );
  const left = ignored.length === 0 ? '' : `; left out: ${ignored.join(', ')}`;
  const sum = `${main} with ${workers} workers: ${count(problems, 'problem')}, ${count(findings.length - problems, 'note')}${left}`;
  return `${[...rows, sum].join('\n\n')}\n`;
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}
