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
    .summary('Finds the parts of an app that do not work correctly with several workers')
    .description(
      'Starts the app once, in one process on a free port, examines it, and stops it. ' +
        'Reports each problem caused by several workers, with location and remedy. ' +
        'The app starts as usual: it connects to its database, and its hooks run. ' +
        'Exits with code 1 if it finds a problem.',
    )
    .argument('[main]', 'the file that calls bootstrap()', 'dist/main.js')
    .option(
      '--workers <n>',
      'number of workers to assume (default: the number that the app would start here)',
      workerCount,
    )
    .option(
      '--max-connections <n>',
      'connection limit of the database (default: the usual limit for its type)',
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
