import type { FindingName } from 'nestjs-cluster/bootstrap';
import { oneLine } from '../output.js';
import type { Finding } from './finding.js';

/** The doctor's report on an app. */
export interface DoctorReport {
  /** The file that was started, as it was given. */
  readonly main: string;
  /** The number of workers that the findings assume. */
  readonly workers: number;
  readonly findings: readonly Finding[];
  /** The names in the app's option `warnings.ignore`. Findings with these names are left out. */
  readonly ignored: readonly string[];
}

/** The end of a warning that has a name: `silencedBy()` of nestjs-cluster writes it. */
const NAMED = /; warnings: \{ ignore: \['([\w-]+)'\] \} of bootstrap\(\) silences this$/;

/** Turns a warning of the start into a finding. The last "; " separates the problem from the remedy. */
export function findingOf(warning: string, main: string): Finding {
  const name = (NAMED.exec(warning)?.[1] ?? 'warning') as FindingName;
  const text = warning.replace(NAMED, '');
  const end = text.lastIndexOf('; ');
  return {
    name,
    where: main,
    problem: end < 0 ? text : text.slice(0, end),
    remedy: end < 0 ? 'read the log of the app' : text.slice(end + 2),
  };
}

/** The report as text: each finding's name and place, with its problem and remedy below. */
export function pageOf({ main, workers, findings, ignored }: DoctorReport): string {
  const width = Math.max(...findings.map(({ name }) => name.length), 0);
  const indent = ' '.repeat(width + 2);
  const rows = findings.map(({ name, where, problem, remedy }) =>
    [`${name.padEnd(width)}  ${where}`, `${indent}${problem}`, `${indent}-> ${remedy}`]
      .map(oneLine)
      .join('\n'),
  );
  const left = ignored.length === 0 ? '' : `; ignored: ${ignored.join(', ')}`;
  const count = `${findings.length} finding${findings.length === 1 ? '' : 's'}`;
  return `${[...rows, `${main} with ${workers} workers: ${count}${left}`].join('\n\n')}\n`;
}
