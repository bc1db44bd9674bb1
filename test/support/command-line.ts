import { join } from 'node:path';
import { NODE } from './cluster-process.js';
import { plainEnvironment, runCommand } from './run-command.js';

const root = join(import.meta.dirname, '../..');

/** The command `nestjs-cluster`, as arguments of Node. */
export const MAIN = join(root, 'dist/cli/main.js');

/** @returns the output of `nestjs-cluster` with these arguments; throws if it fails or warns. */
export async function printed(...args: string[]): Promise<string> {
  const options = { cwd: root, env: plainEnvironment() };
  const { code, stdout, stderr } = await runCommand(NODE, [MAIN, ...args], options);
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`);
  return stdout;
}
