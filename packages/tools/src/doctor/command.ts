import type { Command } from 'commander';
import { interruptible } from '../app/interruption.js';
import { wholeNumber, workerCount } from '../arguments.js';
import { examineApp } from './examine-app.js';
import { printJson } from '../output.js';
import { pageOf } from './report.js';

interface DoctorArguments {
  readonly workers?: number;
  readonly maxConnections?: number;
  readonly json: boolean;
}

const MAX_CONNECTIONS = 99_999;

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .summary('Says what in an app does not work correctly in several workers')
    .description(
      'Starts the app once, in one process on a free port, examines it and ends it. ' +
        'Says what goes wrong with several workers, where, and what to do about it. ' +
        'The app starts as usual: it connects to its database, and its hooks run. ' +
        'The exit code is 1 if there is a finding.',
    )
    .argument('[main]', 'the file that calls bootstrap()', 'dist/main.js')
    .option(
      '--workers <n>',
      'examine it for so many workers (default: the number that it would start here)',
      workerCount,
    )
    .option(
      '--max-connections <n>',
      'connections that the database allows (default: the default of the database)',
      wholeNumber(MAX_CONNECTIONS, 'a whole number'),
    )
    .option('--json', 'print JSON', false)
    .action((main: string, { json, ...settings }: DoctorArguments) =>
      interruptible(async (interrupted) => {
        const report = await examineApp({ main, ...settings }, interrupted);
        if (json) printJson(report);
        else process.stdout.write(pageOf(report));
        process.exitCode = report.findings.length > 0 ? 1 : 0;
      }),
    );
}
