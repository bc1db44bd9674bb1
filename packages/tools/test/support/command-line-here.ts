import { runCommandLine } from '../../src/program.js';
import type { CommandResult } from '../../../../test/support/run-command.js';
import { runHere } from '../../../../test/support/run-here.js';

/** Runs `nestjs-cluster-tools` with these arguments in this process. Not twice at a time. */
export function commandLine(...args: string[]): Promise<CommandResult> {
  return runHere(() => runCommandLine(args));
}
