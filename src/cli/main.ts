#!/usr/bin/env node
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { ClusterError } from '../errors/index.js';
import { MAX_WORKERS } from '../options/index.js';
import { iptablesScript, iptablesRemovalScript } from './iptables.js';
import { nftablesRuleset } from './nftables.js';
import { nginxConfiguration } from './nginx.js';
import { describedPorts, runningPorts } from './worker-ports.js';

/** Where the ports of the workers are to be had from. */
interface PortOptions {
  readonly url: string;
  readonly port?: number;
  readonly workers?: number;
}

const DEFAULT_URL = 'http://127.0.0.1:3000/health';

function portNumber(text: string): number {
  const port = Number(text);
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new InvalidArgumentError('expected a port from 1 to 65535.');
}

function hostName(text: string): string {
  if (/^[\w.:-]+$/.test(text)) return text;
  throw new InvalidArgumentError('expected a host name or an address.');
}

function count(text: string): number {
  const workers = Number(text);
  if (Number.isInteger(workers) && workers >= 1 && workers <= MAX_WORKERS) return workers;
  throw new InvalidArgumentError(`expected a whole number from 1 to ${MAX_WORKERS}.`);
}

/** With `port` and `workers` nothing is asked; else the running cluster is. */
function workerPorts({ url, port, workers }: PortOptions): Promise<readonly number[]> {
  return port === undefined || workers === undefined
    ? runningPorts(url)
    : Promise.resolve(describedPorts(port, workers));
}

function generator(name: string, summary: string): Command {
  return new Command(name)
    .summary(summary)
    .addOption(
      new Option('--url <url>', 'health endpoint of the running cluster').default(DEFAULT_URL),
    )
    .addOption(
      new Option('--port <port>', 'port of the first worker, instead of asking (with --workers)')
        .argParser(portNumber)
        .conflicts('url'),
    )
    .addOption(
      new Option('--workers <n>', 'number of workers, instead of asking (with --port)')
        .argParser(count)
        .conflicts('url'),
    )
    .addOption(new Option('--listen <port>', 'public port').argParser(portNumber).default(80))
    .hook('preAction', (command) => {
      const { port, workers } = command.opts<PortOptions>();
      if ((port === undefined) !== (workers === undefined)) {
        command.error(
          "error: '--port' and '--workers' go together; without them the cluster at --url is asked",
        );
      }
    });
}

const program = new Command('nestjs-cluster')
  .description("Configures what stands in front of a cluster with balancing 'ports'.")
  .showHelpAfterError('(--help shows what there is)');

program.addCommand(
  generator('nginx', 'print an nginx configuration that balances over the workers')
    .addOption(
      new Option('--host <address>', 'address at which nginx reaches the workers')
        .argParser(hostName)
        .default('127.0.0.1'),
    )
    .action(async (options: PortOptions & { host: string; listen: number }) => {
      process.stdout.write(nginxConfiguration(await workerPorts(options), options));
    }),
);

program.addCommand(
  generator('iptables', 'print a shell script of iptables rules that balance over the workers')
    .option('--ipv6', 'rules of ip6tables', false)
    .option('--remove', 'print what takes the rules away again', false)
    .action(async (options: PortOptions & { listen: number; ipv6: boolean; remove: boolean }) => {
      process.stdout.write(
        options.remove
          ? iptablesRemovalScript(options)
          : iptablesScript(await workerPorts(options), options),
      );
    }),
);

program.addCommand(
  generator('nftables', 'print an nftables ruleset that balances over the workers').action(
    async (options: PortOptions & { listen: number }) => {
      process.stdout.write(nftablesRuleset(await workerPorts(options), options));
    },
  ),
);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) process.exit(error.exitCode);
  if (!(error instanceof ClusterError)) throw error;
  process.stderr.write(`error: ${error.message}\n`);
  process.exit(error.exitCode);
}
