import { join } from 'node:path';
import { NODE } from './cluster-process.js';
import { type CommandResult, plainEnvironment, runCommand } from './run-command.js';

const root = join(import.meta.dirname, '../..');

/** The command `nestjs-cluster`, as arguments of Node. */
export const MAIN = join(root, 'dist/cli/main.js');

/** Runs `nestjs-cluster` with these arguments. */
export function commandLine(...args: string[]): Promise<CommandResult> {
  return runCommand(NODE, [MAIN, ...args], { cwd: root, env: plainEnvironment() });
}

/** @returns the output of `nestjs-cluster` with these arguments; throws if it fails or warns. */
export async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await commandLine(...args);
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`);
  return stdout;
}
