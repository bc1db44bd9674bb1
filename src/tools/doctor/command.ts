import { statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { ClusterError } from '../../contract/errors/index.js';
import { wholeNumber, workerCount } from '../cli/arguments.js';
import { Interruption } from '../tune/run/interruption.js';
import { examineApp } from './examine-app.js';
import { isWrong, jsonOf, pageOf } from './report.js';

interface DoctorArguments {
  readonly workers?: number;
  readonly maxConnections?: number;
  readonly proxyKeepAlive?: number;
  readonly json: boolean;
}

/** The main file of `nest build`. */
const DEFAULT_MAIN = 'dist/main.js';

const MAX_CONNECTIONS = 99_999;
const MAX_SECONDS = 86_400;

export function addDoctorCommand(program: Command): void {
  const doctor = program
    .command('doctor')
    .summary('Says what in an app does not fit several workers')
    .description(
      'Starts the app once, as one worker on a free port, looks at it and ends it. ' +
        'Says what goes wrong with several workers, where, and what to do about it. ' +
        'The app is started as ever: it connects to its database, and its hooks run. ' +
        'The exit code is 1 if there is a problem.',
    )
    .argument('[main]', 'the file that calls bootstrap()', DEFAULT_MAIN)
    .addOption(
      new Option(
        '--workers <n>',
        'look at it for so many workers (default: what it would run with here)',
      ).argParser(workerCount),
    )
    .addOption(
      new Option(
        '--max-connections <n>',
        'connections that the database allows (default: as PostgreSQL and MySQL come)',
      ).argParser(wholeNumber(MAX_CONNECTIONS, 'a whole number')),
    )
    .addOption(
      new Option(
        '--proxy-keep-alive <seconds>',
        'how long the proxy in front keeps an idle connection (default: 60 if the app trusts a proxy)',
      ).argParser(wholeNumber(MAX_SECONDS, 'a whole number')),
    )
    .option('--json', 'print JSON', false);
  doctor.action(async (main: string, options: DoctorArguments) => {
    const script = found(main);
    if (script === undefined) {
      return doctor.error(
        `error: there is no file ${JSON.stringify(main)}; build the app first, or give the file that calls bootstrap()`,
      );
    }
    await run(script, options);
  });
}

/** As `node` finds it: `dist/main` is `dist/main.js`. */
function found(main: string): string | undefined {
  const path = resolve(main);
  // A symbolic link is not resolved: the app may look for its files next to the link.
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return path;
  try {
    return createRequire(path).resolve(path);
  } catch {
    return undefined;
  }
}

async function run(script: string, options: DoctorArguments): Promise<void> {
  const { workers, maxConnections, proxyKeepAlive, json } = options;
  const interruption = new Interruption();
  try {
    const examination = {
      maxConnections,
      proxyKeepAliveMs: proxyKeepAlive === undefined ? undefined : proxyKeepAlive * 1_000,
    };
    const report = await examineApp({ script, workers, examination }, interruption);
    process.stdout.write(json ? jsonOf(report) : pageOf(report));
    process.exitCode = isWrong(report) ? 1 : 0;
  } catch (error) {
    if (!interruption.signal.aborted || error instanceof ClusterError) throw error;
    process.exitCode = interruption.exitCode;
  } finally {
    interruption[Symbol.dispose]();
  }
}
