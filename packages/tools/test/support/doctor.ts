import { join } from 'node:path';
import type { CommandResult } from '../../../../test/support/run-command.js';
import type { DoctorReport } from '../../src/doctor/report.js';
import { tools } from './tools.js';

/** An app that has everything in it that a doctor looks for. */
export const PLANTED = join(import.meta.dirname, '../fixtures/planted/main.mjs');

/** Runs `nestjs-cluster-tools doctor` to its end. */
export function doctor(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  cwd?: string,
): Promise<CommandResult> {
  return tools(['doctor', ...args], { env, ...(cwd !== undefined && { cwd }) });
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
