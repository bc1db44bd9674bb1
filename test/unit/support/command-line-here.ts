import { runCommandLine } from '../../../src/cli/program.js';
import type { CommandResult } from '../../support/run-command.js';
import { runHere } from '../../support/run-here.js';

/** Runs `nestjs-cluster` with these arguments in this process. Not twice at a time. */
export function commandLine(...args: string[]): Promise<CommandResult> {
  return runHere(() => runCommandLine(args));
}

/** @returns the output of a command. Throws if it fails or warns. */
export async function printed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await commandLine(...args);
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`);
  return stdout;
}
