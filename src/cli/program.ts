import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { clean } from '../contract/errors/errors.js';
import { besideThis } from '../contract/process/own-file.js';
import { addCommands } from './commands.js';
import { CommandError, EXIT } from './output.js';

const { version } = JSON.parse(readFileSync(besideThis('package.json')!, 'utf8')) as {
  version: string;
};

/** Runs the command line. Exits the process if it fails. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  try {
    await createProgram().parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    process.stderr.write(`error: ${withoutControls(error.message)}\n`);
    process.exit(error.exitCode);
  }
}

function createProgram(): Command {
  const program = new Command('nestjs-cluster')
    .description('Inspects and controls running clusters of NestJS apps.')
    .version(version)
    .showHelpAfterError('(use --help to list the commands and options)')
    // Set before the commands are added, because they inherit this setting.
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : EXIT.usage))
    .configureOutput({ outputError: (text, write) => write(withoutControls(text)) });

  program.commandsGroup('Commands (-c <name> selects one of several clusters; slots start at 0):');
  addCommands(program);
  addMoved(program);
  program.helpCommand('help [command]', 'Shows help for a command');
  return program;
}

/** Commands that moved to `@nestjs-cluster/tools`. Users may still call them here. */
const MOVED = ['doctor', 'advise', 'tune', 'dashboard', 'nginx', 'iptables'];

function addMoved(program: Command): void {
  for (const name of MOVED) {
    program
      .command(name, { hidden: true })
      .allowUnknownOption()
      .argument('[arguments...]')
      .helpOption(false)
      .action(() => {
        process.stderr.write(`${name} has moved; run npx @nestjs-cluster/tools ${name}\n`);
        process.exit(EXIT.usage);
      });
  }
}

/** Removes control characters, so that text from outside cannot move the terminal's cursor. */
function withoutControls(text: string): string {
  return clean(text).replaceAll('\r', '');
}
