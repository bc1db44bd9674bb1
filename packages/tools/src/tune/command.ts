import { availableParallelism } from 'node:os';
import type { Command } from 'commander';
import { interruptible } from '../app/interruption.js';
import { addHeader, httpUrl, wholeNumber, workerCount } from '../arguments.js';
import { loadAutocannon } from './load.js';
import { tune } from './tune.js';

interface TuneArguments {
  readonly url: string;
  readonly maxWorkers: number;
  readonly connections?: number;
  readonly seconds: number;
  readonly header?: Readonly<Record<string, string>>;
  readonly healthPath: string;
}

/** The default number of connections, enough to keep requests waiting in each worker. */
const CONNECTIONS = 32;
const CONNECTIONS_PER_WORKER = 8;
const MAX_CONNECTIONS = 10_000;
const MAX_SECONDS = 3_600;

export function addTuneCommand(program: Command): void {
  program
    .command('tune')
    .usage('[options] --url <path> -- <command...>')
    .summary('Finds the best number of workers for an app')
    .description(
      'Finds how many workers an app needs for a route on this machine. Starts the app with ' +
        '1, 2, … workers, puts the same load on the route each time, and stops the app. Ends when two ' +
        'steps in a row add less than 5 % throughput. Prints a table and, on the last line, ' +
        'the environment variable to set; progress goes to standard error. ' +
        'Needs autocannon in the project.',
    )
    .argument('<command...>', "the command that starts the app, after '--'")
    .requiredOption('--url <path>', 'the route: a path on http://127.0.0.1:3000, or a URL', httpUrl)
    .option(
      '--max-workers <n>',
      'maximum number of workers to try',
      workerCount,
      availableParallelism(),
    )
    .option(
      '--connections <n>',
      `number of connections that send requests continuously (default: ${CONNECTIONS}, or ${CONNECTIONS_PER_WORKER} for each worker if that is more)`,
      wholeNumber(MAX_CONNECTIONS, 'a whole number'),
    )
    .option(
      '--seconds <n>',
      'length of each measurement in seconds, after a warm-up',
      wholeNumber(MAX_SECONDS, 'a whole number'),
      5,
    )
    .option('--header <name: value>', 'a request header; can be repeated', addHeader)
    .option('--health-path <path>', "path of the app's health endpoint", '/health')
    .action(run);
}

async function run(command: string[], options: TuneArguments): Promise<void> {
  const { url, header: headers = {}, healthPath, seconds, maxWorkers } = options;
  const connections =
    options.connections ?? Math.max(CONNECTIONS, CONNECTIONS_PER_WORKER * maxWorkers);
  const healthUrl = new URL(healthPath, url).href;
  const autocannon = await loadAutocannon();
  const plan = { autocannon, command, healthUrl, load: { url, headers, connections, seconds } };
  await interruptible((interrupted) => tune(plan, maxWorkers, interrupted));
}
