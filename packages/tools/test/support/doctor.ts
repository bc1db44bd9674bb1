import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding } from '../../src/observe/findings/finding.js';
import { NODE } from './cluster-process.js';
import { MAIN } from './command-line.js';
import { type CommandResult, plainEnvironment, runCommand } from './run-command.js';

const root = join(import.meta.dirname, '../..');

/** An app that has everything in it that a doctor looks for. */
export const PLANTED = join(root, 'test/fixtures/planted/main.mjs');

export interface DoctorResult extends CommandResult {
  /** The report that the doctor prints with `--json`. */
  readonly report: {
    readonly workers: number;
    readonly findings: readonly Finding[];
    readonly ignored: readonly string[];
  };
}

/** Runs `nestjs-cluster doctor` to its end. */
export function doctor(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd = root,
): Promise<CommandResult> {
  const environment = { ...plainEnvironment(), ...env };
  return runCommand(NODE, [MAIN, 'doctor', ...args], { cwd, env: environment });
}

/** Runs the doctor with `--json` and parses its report. Fails if the doctor prints nothing. */
export async function examined(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<DoctorResult> {
  const result = await doctor([...args, '--json'], env);
  if (result.stdout === '') throw new Error(`exit code ${result.code}: ${result.stderr}`);
  return { ...result, report: JSON.parse(result.stdout) as DoctorResult['report'] };
}

/** Each file below a directory, with what changes when it is written. */
export function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((path) => {
      const { size, mtimeMs } = statSync(join(directory, path));
      return `${path} ${size} ${mtimeMs}`;
    })
    .toSorted();
}
