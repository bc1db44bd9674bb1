import type { Finding } from '../../observe/findings/finding.js';

/** The doctor's report on an app. */
export interface DoctorReport {
  /** The file that was started. */
  readonly main: string;
  /** Workers that the findings are about. */
  readonly workers: number;
  readonly findings: readonly Finding[];
  /** Names of findings that `doctor.ignore` of the app leaves out. */
  readonly ignored: readonly string[];
}

/** A table of names and places, with the problem and its remedy below each. */
export function pageOf({ main, workers, findings, ignored }: DoctorReport): string {
  const problems = findings.filter(({ level }) => level === 'problem').length;
  const width = Math.max(...findings.map(({ name }) => name.length), 0);
  const indent = ' '.repeat('problem  '.length + width + 2);
  const rows = findings.map(({ name, level, where, problem, remedy, docs }) =>
    [
      `${level.padEnd('problem'.length)}  ${name.padEnd(width)}  ${where}`,
      ...[problem, `-> ${remedy}`, docs].map((text) => indent + text),
    ].join('\n'),
  );
  const left = ignored.length === 0 ? '' : `; left out: ${ignored.join(', ')}`;
  const sum = `${main} with ${workers} workers: ${count(problems, 'problem')}, ${count(findings.length - problems, 'note')}${left}`;
  return `${[...rows, sum].join('\n\n')}\n`;
}

function count(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`;
}
