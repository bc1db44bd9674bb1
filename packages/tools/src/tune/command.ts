import { availableParallelism } from 'node:os';
import type { Command } from 'commander';
import { interruptible } from '../app/interruption.js';
import { addHeader, endpointPath, routeUrl, wholeNumber, workerCount } from '../arguments.js';
import { loadAutocannon } from './load.js';
import { tune } from './tune.js';

interface TuneArguments {
  readonly url: string;
  readonly maxWorkers?: number;
  readonly connections?: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly header?: Readonly<Record<string, string>>;
  readonly healthPath: string;
  readonly metricsPath: string;
}

/**
 * The default number of connections. With it, each worker always has requests waiting. A route that
 * only waits, e.g. for a database, still needs only one worker.
 */
const CONNECTIONS = 32;
const CONNECTIONS_PER_WORKER = 8;
const MAX_CONNECTIONS = 10_000;
const MAX_SECONDS = 3_600;
const MAX_ROUNDS = 100;

const NO_COMMAND =
  "error: give the command that starts the app behind '--': npx @nestjs-cluster/tools tune --url /cats -- node dist/main.js";

export function addTuneCommand(program: Command): void {
  program
    .command('tune')
    .usage('[options] --url <path> -- <command...>')
    .summary('Finds how many workers an app should run with')
    .description(
      'Finds how many workers an app should run with on this machine, for one of its routes: ' +
        'starts it with 1, 2, … of them, loads the route in the same way each time, and ends it. ' +
        'Stops where two more settings in a row bring less than 5 % more throughput and no better p99. ' +
        'Recommends the fewest workers that answer as much as any number does, within 5 % ' +
        'or the difference between the rounds. Where the route runs in threads (@CpuBound), it finds their number too. ' +
        'The table and, in the last line, the settings for the environment go to standard output, progress to standard error. ' +
        'Makes its load with autocannon, which the project has to have installed.',
    )
    .argument('[command...]', "what starts the app, behind '--'")
    .requiredOption(
      '--url <path>',
      'the route: a path of http://127.0.0.1:3000, or a whole URL',
      routeUrl,
    )
    .option('--max-workers <n>', 'most workers to try (default: the number of cores)', workerCount)
    .option(
      '--connections <n>',
      `connections that ask without pause (default: ${CONNECTIONS}, or ${CONNECTIONS_PER_WORKER} for each worker where that is more)`,
      wholeNumber(MAX_CONNECTIONS, 'a whole number'),
    )
    .option(
      '--seconds <n>',
      'seconds of each measurement, after a warm-up',
      wholeNumber(MAX_SECONDS, 'a whole number'),
      5,
    )
    .option(
      '--rounds <n>',
      'measurements of each setting; their median counts',
      wholeNumber(MAX_ROUNDS, 'a whole number'),
      3,
    )
    .option('--header <name: value>', 'a header to send along; may be given again', addHeader)
    .option('--health-path <path>', 'health.path of the app', endpointPath, '/health')
    .option('--metrics-path <path>', 'metrics.path of the app', endpointPath, '/metrics')
    .action(async (command: string[], options: TuneArguments) => {
      if (command.length === 0) program.error(NO_COMMAND);
      await run(command, options);
    });
}

async function run(command: string[], options: TuneArguments): Promise<void> {
  const autocannon = await loadAutocannon();
  const { url, header = {}, healthPath, metricsPath, seconds, rounds } = options;
  const maxWorkers = options.maxWorkers ?? availableParallelism();
  const connections =
    options.connections ?? Math.max(CONNECTIONS, CONNECTIONS_PER_WORKER * maxWorkers);
  const limits = {
    maxWorkers,
    maxThreads: availableParallelism(),
    threadsAreSet: Boolean(process.env['CLUSTER_THREADS']),
  };
  const healthUrl = new URL(healthPath, url).href;
  const metricsUrl = new URL(metricsPath, url).href;
  const plan = { command, autocannon, url, healthUrl, metricsUrl, headers: header };
  await interruptible((interruption) =>
    tune({ ...plan, connections, seconds, rounds, limits }, interruption),
  );
}
