import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { interruptible } from '../app/interruption.js';
import { wholeNumber, workerCount } from '../cli/arguments.js';
import { examineApp } from './examine-app.js';
import { pageOf } from './report.js';

interface DoctorArguments {
  readonly workers?: number;
  readonly maxConnections?: number;
  readonly proxyKeepAlive?: number;
  readonly json: boolean;
}

const MAX_CONNECTIONS = 99_999;
const MAX_SECONDS = 86_400;

export function addDoctorCommand(program: Command): void {
  const doctor = program
    .command('doctor')
    .summary('Says what in an app does not fit several workers')
    .description(
      'Starts the app once, as one worker on a free port, looks at it and ends it. ' +
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
    .option(
      '--proxy-keep-alive <seconds>',
      'how long the proxy in front keeps an idle connection (default: 60 if the app trusts a proxy)',
      wholeNumber(MAX_SECONDS, 'a whole number'),
    )
    .option('--json', 'print JSON', false);
  doctor.action(async (main: string, options: DoctorArguments) => {
    const script = mainFile(main);
    if (script !== undefined) return await run(script, options);
    doctor.error(
      `error: there is no file ${JSON.stringify(main)}; build the app first, or give the file that calls bootstrap()`,
    );
  });
}

async function run(script: string, options: DoctorArguments): Promise<void> {
  const { workers, maxConnections, proxyKeepAlive, json } = options;
  const settings = {
    maxConnections,
    proxyKeepAliveMs: proxyKeepAlive === undefined ? undefined : proxyKeepAlive * 1_000,
  };
  await interruptible(async (interruption) => {
    const report = await examineApp({ script, workers, settings }, interruption);
    process.stdout.write(json ? `${JSON.stringify(report, undefined, 2)}\n` : pageOf(report));
    const isWrong = report.findings.some(({ level }) => level === 'problem');
    process.exitCode = isWrong ? 1 : 0;
  });
}

/** Finds the file as `node` does, so `dist/main` finds `dist/main.js`. */
function mainFile(main: string): string | undefined {
  const path = resolve(main);
  // Symbolic links are not resolved, because the app may look for its files next to the link.
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return path;
  try {
    return createRequire(path).resolve(path);
  } catch {
    return undefined;
  }
}
