import { join } from 'node:path';
import { NODE } from '../../../../test/support/cluster-process.js';
import {
  type CommandResult,
  plainEnvironment,
  runCommand,
} from '../../../../test/support/run-command.js';
import type { DoctorReport } from '../../src/doctor/report.js';

const root = join(import.meta.dirname, '../../../..');

/** The command `nestjs-cluster-tools`, as arguments of Node. */
export const TOOLS = join(root, 'packages/tools/dist/main.js');

/** An app that has everything in it that a doctor looks for. */
export const PLANTED = join(root, 'packages/tools/test/fixtures/planted/main.mjs');

/** Runs `nestjs-cluster-tools doctor` to its end. */
export function doctor(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd = root,
): Promise<CommandResult> {
  const environment = { ...plainEnvironment(), ...env };
  return runCommand(NODE, [TOOLS, 'doctor', ...args], { cwd, env: environment });
}

/** Runs the doctor with `--json` and parses its report. Fails if the doctor prints nothing. */
export async function examined(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandResult & { readonly report: DoctorReport }> {
  const result = await doctor([...args, '--json'], env);
  if (result.stdout === '') throw new Error(`exit code ${result.code}: ${result.stderr}`);
  return { ...result, report: JSON.parse(result.stdout) as DoctorReport };
}
