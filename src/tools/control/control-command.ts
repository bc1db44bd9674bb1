import { type Command, Option } from 'commander';
import { ControlClient } from './control-client.js';
import { AmbiguousClusterError, findCluster } from './found-cluster.js';

/** The options of every command that talks to a running cluster. */
export interface ControlOptions {
  readonly cluster?: string;
  readonly json: boolean;
}

interface Description {
  /** As in `restart <slot>`. */
  readonly usage: string;
  readonly summary: string;
  /** A longer text than the summary, if there is one. */
  readonly description?: string;
  /** An example of its use, after the name of the program. */
  readonly example: string;
}

/** Adds a command that talks to a running cluster. */
export function controlCommand(
  program: Command,
  { usage, summary, description = summary, example }: Description,
): Command {
  return withJson(program.command(usage), example)
    .summary(summary)
    .description(`${description}.`)
    .addOption(
      new Option(
        '-c, --cluster <name>',
        'name of the cluster, pid of its primary or path of its socket, where there are several',
      ),
    );
}

/** A command that prints JSON if asked, and shows an example in its help. */
export function withJson(command: Command, example: string): Command {
  return command
    .option('--json', 'print JSON', false)
    .addHelpText('after', `\nExample:\n  nestjs-cluster ${example}`);
}

/** Finds the cluster for a command. If several clusters could be meant, that is a usage error. */
export async function clientFor(
  command: Command,
  { cluster }: Pick<ControlOptions, 'cluster'>,
): Promise<ControlClient> {
  try {
    return new ControlClient(await findCluster(cluster));
  } catch (error) {
    if (error instanceof AmbiguousClusterError) return command.error(`error: ${error.message}`);
    throw error;
  }
}
