import type { Command } from 'commander';
import type { ClusterStatus } from '../control/cluster-status.js';
import { ClusterError, NoClusterError } from '../contract/errors/index.js';
import { ControlClient } from './control-client.js';
import { clientFor, controlCommand, type ControlOptions, withJson } from './control-command.js';
import { clustersOfUser, labelOf, NOBODY } from './found-cluster.js';
import { printJson, printLine, printLines } from './view/output.js';
import { type Column, formatSeconds, formatTable } from './view/table.js';
import { STATUS_COLUMNS, summarize } from './view/workers-table.js';

/** A cluster, with its status or the reason why it does not answer. */
interface Listed {
  readonly name: string;
  readonly pid: number | undefined;
  readonly path: string;
  readonly status: ClusterStatus | undefined;
  readonly problem: string | undefined;
}

const of = (get: (status: ClusterStatus) => string) => (listed: Listed) =>
  listed.status === undefined ? '-' : get(listed.status);

const COLUMNS: readonly Column<Listed>[] = [
  { title: 'name', value: ({ name }) => name, left: true },
  { title: 'pid', value: ({ pid }) => String(pid) },
  { title: 'workers', value: of(({ cluster }) => `${cluster.ready}/${cluster.desired}`) },
  { title: 'up', value: of(({ startedAt }) => uptimeOf(startedAt)) },
  { title: 'address', value: of(addressOf), left: true },
  { title: 'node', value: of(({ node }) => node), left: true },
  {
    title: 'status',
    value: ({ status, problem }) => problem ?? status!.cluster.status,
    left: true,
  },
];

export function addInspectCommands(program: Command): void {
  withJson(program.command('ps'), 'ps')
    .summary('Lists the clusters of this user')
    .description('Lists the clusters of this user that run on this machine.')
    .action(async ({ json }: { readonly json: boolean }) => list(json));

  controlCommand(program, {
    name: 'status',
    summary: 'Shows a cluster and its workers',
    example: 'status --cluster shop',
  }).action(async (options: ControlOptions) => {
    const client = await clientFor(options);
    const answer = await client.get<ClusterStatus>('/v1/status');
    if (options.json) return printJson(answer);
    const { name, pid, version, node, startedAt, cluster } = answer;
    printLine(
      `${name} (primary pid ${pid}, nestjs-cluster ${version ?? '-'}, Node ${node}, up ${uptimeOf(startedAt)})`,
    );
    printLine(summarize(cluster));
    printLines(formatTable(STATUS_COLUMNS, cluster.workers));
  });
}

async function list(json: boolean): Promise<void> {
  const listed = await Promise.all(
    (await clustersOfUser()).map(async (found): Promise<Listed> => {
      try {
        const status = await new ControlClient(found).get<ClusterStatus>('/v1/status');
        return { ...found, name: status.name, status, problem: undefined };
      } catch (error) {
        if (!(error instanceof ClusterError)) throw error;
        const prefix = `cannot ask the cluster at ${labelOf(found)}: `;
        return { ...found, status: undefined, problem: error.message.replace(prefix, '') };
      }
    }),
  );
  if (json) {
    printJson(
      listed.map(({ name, pid, path, status, problem }) =>
        problem === undefined ? { ...status, path } : { name, pid, path, problem },
      ),
    );
  } else if (listed.length > 0) {
    printLines(formatTable(COLUMNS, listed));
  }
  if (listed.length === 0) throw new NoClusterError(NOBODY);
}

/** The address of the app, or `-` for an app without an HTTP server. */
function addressOf({ options, cluster }: ClusterStatus): string {
  if (cluster.balancing === 'none') return '-';
  return 'path' in options ? options.path : `${options.host ?? '*'}:${options.port}`;
}

function uptimeOf(startedAt: string): string {
  return formatSeconds((Date.now() - Date.parse(startedAt)) / 1_000);
}
