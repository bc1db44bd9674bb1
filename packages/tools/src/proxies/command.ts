import { type Command, Option } from 'commander';
import {
  bodySize,
  hostName,
  hostOf,
  httpUrl,
  identifier,
  listenAddress,
  portNumber,
  proxyAddress,
  workerCount,
} from '../arguments.js';
import { iptablesRemovalScript, iptablesScript } from './iptables.js';
import { nginxConfiguration, type NginxOptions } from './nginx.js';
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

export function addProxyCommands(program: Command): void {
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
      process.stdout.write(nginxConfiguration(ports, { ...options, host }));
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
