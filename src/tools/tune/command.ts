import { type Command, Option } from 'commander';
import { ClusterError, clean } from '../../contract/errors/index.js';
import { availableCores, availableWorkers, MAX_WORKERS } from '../../contract/options/index.js';
import { wholeNumber, workerCount } from '../cli/arguments.js';
import { Interruption } from './run/interruption.js';
import { findAutocannon } from './run/load-generator.js';
import { addHeader, endpointPath, routeUrl } from './target.js';
import { tune } from './tune.js';

interface TuneArguments {
  readonly url: string;
  readonly maxWorkers?: number;
  readonly connections?: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly header: Readonly<Record<string, string>>;
  readonly healthPath: string;
  readonly metricsPath: string;
}

/** Enough for a few to wait at each worker; few enough that a route which only waits needs one. */
const CONNECTIONS = 32;
const CONNECTIONS_PER_WORKER = 8;
const MAX_CONNECTIONS = 10_000;
const MAX_SECONDS = 3_600;
const MAX_ROUNDS = 100;

const NO_COMMAND =
  "error: give the command that starts the app behind '--': nestjs-cluster tune --url /cats -- node dist/main.js";

export function addTuneCommand(program: Command): void {
  program
    .command('tune')
    .usage('[options] --url <path> -- <command...>')
    .summary('Finds how many workers an app should run with')
    .description(
      'Finds how many workers an app should run with on this machine, for one of its routes: ' +
        'starts it with 1, 2, … of them, loads the route in the same way each time, and ends it. ' +
        'Stops where two more settings in a row bring less than 5 % more throughput and no better p99. ' +
        'Recommends the fewest workers that answer as much as the most do, within 5 % ' +
        'or what the rounds differ by. Where the route runs in threads (@CpuBound), it finds their number too. ' +
        'The table goes to standard output, its last line is what to put into the environment; progress goes to standard error. ' +
        'Makes its load with autocannon, which the project has to have installed.',
    )
    .argument('[command...]', "what starts the app, behind '--'")
    .addOption(
      new Option('--url <path>', 'the route: a path of http://127.0.0.1:3000, or a whole URL')
        .argParser(routeUrl)
        .makeOptionMandatory(),
    )
    .addOption(
      new Option(
        '--max-workers <n>',
        "most workers to try (default: as many as with workers: 'auto')",
      ).argParser(workerCount),
    )
    .addOption(
      new Option(
        '--connections <n>',
        `connections that ask without pause (default: ${CONNECTIONS}, or ${CONNECTIONS_PER_WORKER} for each worker where that is more)`,
      ).argParser(wholeNumber(MAX_CONNECTIONS, 'a whole number')),
    )
    .addOption(
      new Option('--seconds <n>', 'seconds of each measurement, after a warm-up')
        .argParser(wholeNumber(MAX_SECONDS, 'a whole number'))
        .default(5),
    )
    .addOption(
      new Option('--rounds <n>', 'measurements of each setting; their median counts')
        .argParser(wholeNumber(MAX_ROUNDS, 'a whole number'))
        .default(3),
    )
    .addOption(
      new Option('--header <name: value>', 'a header to send along; may be given again')
        .argParser(addHeader)
        .default({}, 'none'),
    )
    .addOption(
      new Option('--health-path <path>', 'health.path of the app')
        .argParser(endpointPath)
        .default('/health'),
    )
    .addOption(
      new Option('--metrics-path <path>', 'metrics.path of the app')
        .argParser(endpointPath)
        .default('/metrics'),
    )
    .action(async (command: string[], options: TuneArguments) => {
      if (command.length === 0) program.error(NO_COMMAND);
      await run(command, options);
    });
}

async function run(command: string[], options: TuneArguments): Promise<void> {
  const autocannon = findAutocannon(process.cwd());
  const maxWorkers = options.maxWorkers ?? Math.min(availableWorkers(), MAX_WORKERS);
  const interruption = new Interruption();
  try {
    await tune(
      {
        command,
        autocannon,
        url: options.url,
        healthUrl: new URL(options.healthPath, options.url).href,
        metricsUrl: new URL(options.metricsPath, options.url).href,
        headers: options.header,
        connections:
          options.connections ?? Math.max(CONNECTIONS, CONNECTIONS_PER_WORKER * maxWorkers),
        seconds: options.seconds,
        rounds: options.rounds,
        limits: {
          maxWorkers,
          maxThreads: availableCores(),
          threadsAreSet: Boolean(process.env['CLUSTER_THREADS']),
        },
      },
      {
        print: (line) => process.stdout.write(`${line}\n`),
        tell: (line) => process.stderr.write(`${clean(line)}\n`),
      },
      { started: interruption.started, interrupted: interruption.signal },
    );
  } catch (error) {
    if (!interruption.signal.aborted || error instanceof ClusterError) throw error;
    process.exitCode = interruption.exitCode;
  } finally {
    interruption[Symbol.dispose]();
  }
}
