import { join } from 'node:path';
import { NODE } from '../../../../test/support/cluster-process.js';
import { plainEnvironment, runCommand } from '../../../../test/support/run-command.js';

const root = join(import.meta.dirname, '../../../..');

/** The program of `npx @nestjs-cluster/tools`. */
export const MAIN = join(root, 'packages/tools/dist/main.js');

/** @returns the output of the command with these arguments; throws if it fails or warns. */
export async function printed(...args: string[]): Promise<string> {
  const options = { cwd: root, env: plainEnvironment() };
  const { code, stdout, stderr } = await runCommand(NODE, [MAIN, ...args], options);
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`);
  return stdout;
}
