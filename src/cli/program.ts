import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { clean, ClusterError } from '../contract/errors/index.js';
import { USAGE_EXIT_CODE } from './arguments.js';
import { besideThis } from '../contract/process/own-file.js';
import { addChangeCommands } from './change-commands.js';
import { addInspectCommands } from './inspect-commands.js';
import { addProfileCommands } from './profile-commands.js';
import { addTopCommand } from './top-command.js';

const { version } = JSON.parse(readFileSync(besideThis('package.json')!, 'utf8')) as {
  version: string;
};

/** Runs the command with these arguments. If it fails, it ends the process. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    process.stderr.write(`error: ${withoutControls(error.message)}\n`);
    process.exit(error.exitCode);
  }
}

function createProgram(): Command {
  const program = new Command('nestjs-cluster')
    .description('Shows and steers clusters of NestJS apps.')
    .version(version)
    .showHelpAfterError('(--help shows what there is)')
    // Has to be set before the commands are added, because they inherit this setting.
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_EXIT_CODE))
    .configureOutput({ outputError: (text, write) => write(withoutControls(text)) });

  program.commandsGroup('A running cluster (-c <name> where there are several, slots are from 0):');
  addInspectCommands(program);
  addTopCommand(program);
  addChangeCommands(program);
  addProfileCommands(program);
  addMoved(program);
  program.helpCommand('help [command]', 'Shows the help of a command');
  return program;
}

/** The commands of `@nestjs-cluster/tools`, which users may look for here. */
const MOVED = ['doctor', 'advise', 'tune', 'dashboard', 'nginx', 'iptables'];

function addMoved(program: Command): void {
  for (const name of MOVED) {
    program
      .command(name, { hidden: true })
      .allowUnknownOption()
      .argument('[arguments...]')
      .helpOption(false)
      .action(() => {
        process.stderr.write(`nestjs-cluster ${name} is now: npx @nestjs-cluster/tools ${name}\n`);
        process.exit(USAGE_EXIT_CODE);
      });
  }
}

/** Removes control characters, so that text from outside cannot move the terminal's cursor. */
function withoutControls(text: string): string {
  return clean(text).replaceAll('\r', '');
}
