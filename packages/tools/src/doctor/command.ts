import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { interruptible } from '../app/interruption.js';
import { wholeNumber, workerCount } from '../arguments.js';
import { printJson, ToolError } from '../output.js';
import { examineApp, pageOf } from './examine-app.js';

interface DoctorOptions {
  readonly workers?: number;
  readonly maxConnections?: number;
  readonly json: boolean;
}

const MAX_CONNECTIONS = 99_999;

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .summary('Says what in an app does not fit several workers')
    .description(
      'Starts the app once, as one process on a free port, looks at it and ends it. ' +
        'Says what goes wrong with several workers, where, and what to do about it. ' +
        'The app starts as usual: it connects to its database, and its hooks run. ' +
        'The exit code is 1 if there is a problem.',
    )
    .argument('[main]', 'the file that calls bootstrap()', 'dist/main.js')
    .option(
      '--workers <n>',
      'look at it for so many workers (default: what it would run with here)',
      workerCount,
    )
    .option(
      '--max-connections <n>',
      'connections that the database allows (default: as the database comes)',
      wholeNumber(MAX_CONNECTIONS, 'a whole number'),
    )
    .option('--json', 'print JSON', false)
    .action(async (main: string, { json, workers, maxConnections }: DoctorOptions) => {
      const script = mainFile(main);
      await interruptible(async (interruption) => {
        const report = await examineApp(script, { workers, maxConnections }, interruption);
        if (json) printJson(report);
        else process.stdout.write(pageOf(report));
        process.exitCode = report.findings.some(({ level }) => level === 'problem') ? 1 : 0;
      });
    });
}

/** Finds the file as `node` does, so `dist/main` finds `dist/main.js`. @throws ToolError */
function mainFile(main: string): string {
  const path = resolve(main);
  // Symbolic links are not resolved, because the app may look for its files next to the link.
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return path;
  try {
    return createRequire(path).resolve(path);
  } catch {
    throw new ToolError(
      `there is no file ${JSON.stringify(main)}; build the app first, or give the file that calls bootstrap()`,
      64,
    );
  }
}
