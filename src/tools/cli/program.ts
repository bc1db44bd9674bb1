import { readFileSync } from 'node:fs';
import { Command, Option } from 'commander';
import { clean, ClusterError } from '../../contract/errors/index.js';
import { isLoopback } from '../../contract/options/loopback.js';
import {
  bodySize,
  hostName,
  hostOf,
  httpUrl,
  identifier,
  listenAddress,
  portNumber,
  proxyAddress,
  USAGE_EXIT_CODE,
  workerCount,
} from './arguments.js';
import { besideThis } from '../../contract/process/own-file.js';
import { addAdviseCommand } from '../advise/command.js';
import { addChangeCommands } from '../control/change-commands.js';
import { addInspectCommands } from '../control/inspect-commands.js';
import { addProfileCommands } from '../control/profile-commands.js';
import { addTopCommand } from '../control/top-command.js';
import { addDashboardCommand } from '../dashboard/command.js';
import { addDoctorCommand } from '../doctor/command.js';
import { iptablesRemovalScript, iptablesScript } from './iptables.js';
import { nginxConfiguration, type NginxOptions } from './nginx.js';
import { goesAround, openAddress } from './open-address.js';
import { addTuneCommand } from '../tune/command.js';
import { describedPorts, runningPorts } from './worker-ports.js';

/** The options by which a command finds the ports of the workers. */
interface PortOptions {
  readonly url: string;
  readonly port?: number;
  readonly workers?: number;
  readonly name: string;
}

const DEFAULT_URL = 'http://127.0.0.1:3000/health';
const DEFAULT_NAME = 'nestjs_cluster';
const DEFAULT_LISTEN_PORT = 80;

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
    .description('Shows and steers clusters of NestJS apps, and prepares apps for them.')
    .version(version)
    .showHelpAfterError('(--help shows what there is)')
    // Has to be set before the commands are added, because they inherit this setting.
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : USAGE_EXIT_CODE))
    .configureOutput({ outputError: (text, write) => write(withoutControls(text)) });

  program.commandsGroup('A running cluster (-c <name> where there are several, slots are from 0):');
  addInspectCommands(program);
  addTopCommand(program);
  addDashboardCommand(program);
  addChangeCommands(program);
  addProfileCommands(program);
  addAdviseCommand(program);
  program.commandsGroup('Before production:');
  addDoctorCommand(program);
  addTuneCommand(program);
  program.commandsGroup('A proxy or packet filter in front of the workers:');
  addGenerators(program);
  program.helpCommand('help [command]', 'Shows the help of a command');
  return program;
}

function addGenerators(program: Command): void {
  generator(program, 'nginx', 'Prints a configuration of nginx that balances over the workers')
    .option(
      '--listen <[address:]port>',
      'public address',
      listenAddress,
      String(DEFAULT_LISTEN_PORT),
    )
    .option(
      '--host <address>',
      'where nginx reaches the workers (default: the host of --url)',
      hostName,
    )
    .option(
      '--max-body-size <size>',
      'largest body of a request, e.g. 512k or 20m; then 413',
      bodySize,
      '1m',
    )
    .option(
      '--trusted-proxy <address>',
      'a proxy or its network (10.0.0.0/8) in front of nginx, which tells the address of the client; may be given again',
      proxyAddress,
    )
    .action(async (options: PortOptions & Omit<NginxOptions, 'host'> & { host?: string }) => {
      const ports = await workerPorts(program, options);
      const host = options.host ?? hostOf(options.url);
      const text = nginxConfiguration(ports, { ...options, host });
      const isAsked = options.port === undefined;
      const open = isAsked && isLoopback(host) ? await openAddress(ports[0]!) : undefined;
      if (open !== undefined) process.stderr.write(`warning: ${goesAround(open)}\n`);
      process.stdout.write(text);
    });

  generator(
    program,
    'iptables',
    'Prints a shell script of iptables rules that balance over the workers',
  )
    .option('--listen <port>', 'public port', portNumber, DEFAULT_LISTEN_PORT)
    .option('--ipv6', 'rules of ip6tables', false)
    .option('--remove', 'print the script that takes the rules away again', false)
    .action(async (options: PortOptions & { listen: number; ipv6: boolean; remove: boolean }) => {
      process.stdout.write(
        options.remove
          ? iptablesRemovalScript(options)
          : iptablesScript(await workerPorts(program, options), options),
      );
    });
}

function generator(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .summary(description)
    .description(`${description}. Writes to standard output, changes nothing.`)
    .option('--url <url>', 'health endpoint of the running cluster', httpUrl, DEFAULT_URL)
    .addOption(
      new Option('--port <port>', 'port of the first worker, instead of asking (with --workers)')
        .argParser(portNumber)
        .conflicts('url'),
    )
    .addOption(
      new Option('--workers <n>', 'number of workers, instead of asking (with --port)')
        .argParser(workerCount)
        .conflicts('url'),
    )
    .option(
      '--name <name>',
      'name of what is set up, where there is more than one cluster',
      identifier,
      DEFAULT_NAME,
    );
}

/** Computes the ports from `port` and `workers`, or asks the running cluster. */
async function workerPorts(
  program: Command,
  { url, port, workers }: PortOptions,
): Promise<readonly number[]> {
  if (port !== undefined && workers !== undefined) return describedPorts(port, workers);
  if (port === undefined && workers === undefined) return runningPorts(url);
  return program.error(
    "error: '--port' and '--workers' go together; without them the cluster at --url is asked",
  );
}

/** Removes control characters, so that text from outside cannot move the terminal's cursor. */
function withoutControls(text: string): string {
  return clean(text).replaceAll('\r', '');
}
