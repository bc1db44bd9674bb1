import type { FindingName } from 'nestjs-cluster/bootstrap';
import { oneLine } from '../output.js';
import type { Finding } from './finding.js';

export interface DoctorReport {
  /** The started file, as the user gave it. */
  readonly main: string;
  /** The number of workers that the findings assume. */
  readonly workers: number;
  readonly findings: readonly Finding[];
  /** The names in the app's option `warnings.ignore`. Findings with these names are omitted. */
  readonly ignored: readonly string[];
}

/** Matches the end of a named warning, as written by `silencedBy()` of nestjs-cluster. */
const NAMED = /; warnings: \{ ignore: \['([\w-]+)'\] \} of bootstrap\(\) silences this$/;

/** Converts a startup warning to a finding. The last "; " separates the problem from the remedy. */
export function findingOf(warning: string, main: string): Finding {
  const name = (NAMED.exec(warning)?.[1] ?? 'warning') as FindingName;
  const text = warning.replace(NAMED, '');
  const end = text.lastIndexOf('; ');
  return {
    name,
    where: main,
    problem: end < 0 ? text : text.slice(0, end),
    remedy: end < 0 ? "read the app's log" : text.slice(end + 2),
  };
}

/** Formats the report as text: the name and place of each finding, and below them its problem and remedy. */
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
  return `${[...rows, `${main} with ${workers} worker${workers === 1 ? '' : 's'}: ${count}${left}`].join('\n\n')}\n`;
}
