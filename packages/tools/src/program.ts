import { Command } from 'commander';
import { addAdviseCommand } from './advise/command.js';
import { addDashboardCommand } from './dashboard/command.js';
import { addDoctorCommand } from './doctor/command.js';
import { oneLine } from './output.js';
import { addProxyCommands } from './proxies/command.js';
import { addTuneCommand } from './tune/command.js';

/** `EX_USAGE` of sysexits.h. */
const USAGE_EXIT_CODE = 64;

/** Runs the command line. Exits the process if it fails. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    const { exitCode, message } = error as { exitCode?: unknown; message: string };
    if (typeof exitCode !== 'number') throw error; // a bug in this program
    process.stderr.write(`error: ${message.split('\n').map(oneLine).join('\n')}\n`);
    process.exit(exitCode);
  }
}

function createProgram(): Command {
  const program = new Command('nestjs-cluster-tools')
    .description('Prepares apps for nestjs-cluster, and inspects running clusters.')
    .showHelpAfterError('(--help shows the commands)')
    // Set before the commands are added, because they inherit this setting.
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_EXIT_CODE));
  addDoctorCommand(program);
  addTuneCommand(program);
  addAdviseCommand(program);
  addDashboardCommand(program);
  addProxyCommands(program);
  return program;
}
