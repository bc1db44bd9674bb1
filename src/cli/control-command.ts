import type { Command } from 'commander';
import { ControlClient } from './control-client.js';
import { findCluster, labelOf } from './found-cluster.js';
import { printLine } from './view/output.js';

/** The options of every command that talks to a running cluster. */
export interface ControlOptions {
  readonly cluster?: string;
  readonly json: boolean;
}

interface Description {
  readonly name: string;
  readonly summary: string;
  /** Default: the summary. */
  readonly description?: string;
  /** An example call, without the name of the program. */
  readonly example: string;
}

/** Adds a command that talks to a running cluster. */
export function controlCommand(
  program: Command,
  { name, summary, description = summary, example }: Description,
): Command {
  return withJson(program.command(name), example)
    .summary(summary)
    .description(`${description}.`)
    .option(
      '-c, --cluster <name>',
      'name of the cluster, pid of its primary or path of its socket, where there are several',
    );
}

/** Adds the option `--json`, and an example to the help of the command. */
export function withJson(command: Command, example: string): Command {
  return command
    .option('--json', 'print JSON', false)
    .addHelpText('after', `\nExample:\n  nestjs-cluster ${example}`);
}

/**
 * A client for a command that acts on the cluster. Prints the name of the cluster, so that the user
 * sees a mistake. With `--json` only JSON is printed.
 *
 * @throws NoClusterError, AmbiguousClusterError
 */
export async function clientToAct(options: ControlOptions): Promise<ControlClient> {
  const client = await clientFor(options);
  if (!options.json) printLine(`cluster ${labelOf(client.cluster)}`);
  return client;
}

/** @throws NoClusterError, AmbiguousClusterError */
export async function clientFor({
  cluster,
}: Pick<ControlOptions, 'cluster'>): Promise<ControlClient> {
  return new ControlClient(await findCluster(cluster));
}
