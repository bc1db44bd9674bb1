import { availableParallelism } from 'node:os';
import type { Command } from 'commander';
import { identifier, portNumber, workerCount } from '../arguments.js';
import { iptablesRemovalScript, iptablesScript } from './iptables.js';
import { nginxConfiguration } from './nginx.js';

interface ProxyOptions {
  /** The port of the first worker. The other workers have the next ports. */
  readonly port: number;
  readonly workers: number;
  /** The public port. */
  readonly listen: number;
  readonly name: string;
}

interface IptablesOptions extends ProxyOptions {
  readonly ipv6: boolean;
  readonly remove: boolean;
}

export function addProxyCommands(program: Command): void {
  generator(
    program,
    'nginx',
    'Prints an nginx configuration that load-balances across the workers',
  ).action((options: ProxyOptions) => {
    process.stdout.write(nginxConfiguration(portsOf(options), options));
  });

  generator(
    program,
    'iptables',
    'Prints a shell script with iptables rules that load-balance across the workers',
  )
    .option('--ipv6', 'print rules for ip6tables', false)
    .option('--remove', 'print the script that removes the rules', false)
    .action((options: IptablesOptions) => {
      process.stdout.write(
        options.remove ? iptablesRemovalScript(options) : iptablesScript(portsOf(options), options),
      );
    });
}

function generator(program: Command, name: string, description: string): Command {
  return program
    .command(name)
    .summary(description)
    .description(`${description}. Writes to standard output and changes nothing.`)
    .option('--port <port>', 'port of the first worker', portNumber, 3_000)
    .option('--workers <n>', 'number of workers', workerCount, availableParallelism())
    .option('--listen <port>', 'public port', portNumber, 80)
    .option(
      '--name <name>',
      'name of the upstream or chain, different for each cluster',
      identifier,
      'nestjs_cluster',
    );
}

function portsOf({ port, workers }: ProxyOptions): readonly number[] {
  return Array.from({ length: workers }, (_, slot) => port + slot);
}
