import { type Command, InvalidArgumentError } from 'commander';
import { oneLine } from '../contract/errors/errors.js';
import { MAX_PROFILE_SECONDS, MAX_WORKERS } from '../contract/options/checks.js';
import type { ReloadResult, RestartResult, WorkerStack } from '../contract/snapshot/types.js';
import type { ClusterStatus } from '../control/cluster-status.js';
import {
  type ControlClient,
  findCluster,
  NO_CLUSTER,
  runningClusters,
  UnreachableError,
} from './control-client.js';
import {
  CommandError,
  EXIT,
  formatSeconds,
  formatTable,
  printJson,
  printLine,
  printLines,
} from './output.js';
import { summarize, top, workersTable } from './top.js';

/** How long to wait for a stack. The primary waits up to 900 ms for the worker. */
const STACK_MS = 1_400;

interface Options {
  readonly cluster?: string;
  readonly json: boolean;
}

export function addCommands(program: Command): void {
  addCommand(program, 'ps', 'Lists the clusters of this user').action(list);
  onCluster(program, 'status', 'Shows a cluster and its workers').action(showStatus);
  onCluster(program, 'top', 'Shows the workers of a cluster, refreshed every second').action(
    async ({ cluster, json }: Options) => top(await findCluster(cluster), json),
  );

  onCluster(
    program,
    'reload',
    'Replaces all workers with the release now on disk, without downtime. If a new worker fails, the previous release keeps serving',
  ).action(reload);
  onCluster(program, 'scale', 'Changes the number of workers', 'scale +1')
    .argument('<workers>', 'the number, or the change: 4, +1 or -1', wantedWorkers)
    .action(scale);
  onCluster(program, 'restart', 'Replaces one worker without downtime', 'restart 2')
    .argument(...SLOT)
    .action(restart);
  onCluster(program, 'stop', 'Drains all workers and stops the cluster, like SIGTERM').action(stop);

  onCluster(program, 'stack', 'Shows what a worker is doing, even if it is blocked', 'stack 1')
    .argument(...SLOT)
    .action(showStack);
  addProfile(
    program,
    'cpu-profile',
    10,
    'Records a CPU profile of a worker, even if it is blocked',
  );
  // In a shorter profile, a cache that is being filled looks like a leak.
  addProfile(
    program,
    'heap-profile',
    30,
    'Records a heap profile: the functions that allocated the memory in use',
  );
}

function addCommand(program: Command, name: string, text: string, example = name): Command {
  return program
    .command(name)
    .description(`${text}.`)
    .option('--json', 'print JSON', false)
    .addHelpText('after', `\nExample:\n  nestjs-cluster ${example}`);
}

/** Adds a command that talks to one running cluster. */
function onCluster(program: Command, name: string, text: string, example?: string): Command {
  return addCommand(program, name, text, example ?? `${name} --cluster shop`).option(
    '-c, --cluster <name>',
    'name of the cluster, pid of its primary, or path of its socket (default: the cluster of the app in this directory)',
  );
}

function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,3}$/.test(text) ? Number(text) : -1;
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a whole number from ${min} to ${max}.`);
  };
}

const SLOT = [
  '<slot>',
  "the worker's slot, as shown by status",
  wholeNumber(0, MAX_WORKERS - 1),
] as const;

async function list({ json }: Options): Promise<void> {
  const clusters = await Promise.all(
    (await runningClusters()).map(async (client) => {
      const { name, pid, path } = client.cluster;
      try {
        return { ...(await client.status()), path };
      } catch (error) {
        if (!(error instanceof UnreachableError)) throw error;
        return { name, pid, path, problem: error.why };
      }
    }),
  );
  if (json) printJson(clusters);
  if (clusters.length === 0) throw new CommandError(NO_CLUSTER, EXIT.unavailable);
  if (json) return;
  const rows = clusters.map((each) => {
    const cells =
      'cluster' in each
        ? [workersOf(each), uptimeOf(each), addressOf(each), each.node, each.cluster.status]
        : ['-', '-', '-', '-', each.problem];
    return [each.name, String(each.pid), ...cells];
  });
  printLines(formatTable(['name', 'pid', 'workers', 'up', 'address', 'node', 'status'], rows));
}

function workersOf({ cluster: { ready, desired } }: ClusterStatus): string {
  return `${ready}/${desired}`;
}

/** The address of the app, or `-` for an app without an HTTP server. */
function addressOf({ options, cluster }: ClusterStatus): string {
  if (cluster.balancing === 'none') return '-';
  return 'path' in options ? options.path : `${options.host ?? '*'}:${options.port}`;
}

function uptimeOf({ startedAt }: ClusterStatus): string {
  return formatSeconds((Date.now() - Date.parse(startedAt)) / 1_000);
}

async function showStatus(options: Options): Promise<void> {
  const status = await (await findCluster(options.cluster)).status();
  if (options.json) return printJson(status);
  const { name, pid, version, node, cluster } = status;
  printLine(
    `${name} (primary pid ${pid}, nestjs-cluster ${version ?? '-'}, Node ${node}, up ${uptimeOf(status)})`,
  );
  printLine(summarize(cluster));
  printLines(workersTable(cluster.workers));
}

function reload(options: Options): Promise<void> {
  return change<ReloadResult>(
    options,
    (client) => client.post('/v1/reload'),
    ({ outcome, generation, reason }) =>
      outcome === 'completed'
        ? `reload gen=${generation} completed`
        : new CommandError(
            `reload gen=${generation} ${outcome}, the previous release keeps serving: ${reason}`,
          ),
  );
}

function restart(slot: number, options: Options): Promise<void> {
  return change<RestartResult>(
    options,
    (client) => client.post(`/v1/workers/${slot}/restart`),
    ({ outcome, reason }) =>
      outcome === 'completed'
        ? `worker ${slot} restarted`
        : new CommandError(`worker ${slot} was not restarted: ${reason}`),
  );
}

function stop(options: Options): Promise<void> {
  return change<{ exitCode: number }>(
    options,
    (client) => client.post('/v1/stop'),
    ({ exitCode }) =>
      exitCode === 0
        ? 'stopped'
        : new CommandError(`stopped with exit code ${exitCode}; see the cluster's log`),
  );
}

/** Parses `4`, `+1` or `-1` into a function from the current to the new number of workers. */
function wantedWorkers(text: string): (current: number) => number {
  const [, sign] = /^([+-]?)\d{1,3}$/.exec(text) ?? [];
  if (sign !== undefined) return (current) => (sign === '' ? 0 : current) + Number(text);
  throw new InvalidArgumentError(`expected a number from 1 to ${MAX_WORKERS}, +n or -n.`);
}

function scale(wanted: (current: number) => number, options: Options): Promise<void> {
  return change<{ from: number; workers: number; ready: number }>(
    options,
    async (client) => {
      const workers = wanted((await client.status()).cluster.desired);
      if (workers >= 1 && workers <= MAX_WORKERS) {
        return client.post('/v1/scale', { workers });
      }
      throw new CommandError(`cannot run ${workers} workers; use 1 to ${MAX_WORKERS}`);
    },
    ({ from, workers, ready }) => {
      const text = `scaled from ${from} to ${workers} worker${workers === 1 ? '' : 's'}`;
      if (ready >= workers) return text;
      return new CommandError(
        `${text}, but not all are ready (${ready} of ${workers}); see the cluster's log`,
      );
    },
  );
}

/** Finds the cluster to change, and prints its name, so that the user notices a wrong choice. */
async function clientToAct({ cluster, json }: Options): Promise<ControlClient> {
  const client = await findCluster(cluster);
  if (!json) printLine(`cluster ${client.label}`);
  return client;
}

async function change<T>(
  options: Options,
  request: (client: ControlClient) => Promise<T>,
  outcomeOf: (answer: T) => string | CommandError,
): Promise<void> {
  const { json } = options;
  const client = await clientToAct(options);
  const answer = await request(client);
  const outcome = outcomeOf(answer);
  if (json) printJson(answer);
  else if (typeof outcome === 'string') printLine(outcome);
  else throw outcome;
  if (typeof outcome !== 'string') process.exitCode = 1;
}

function addProfile(program: Command, kind: string, defaultSeconds: number, text: string): void {
  onCluster(program, kind, text, `${kind} 1 --seconds 5`)
    .argument(...SLOT)
    .option(
      '-s, --seconds <n>',
      `length of the profile, 1 to ${MAX_PROFILE_SECONDS}`,
      wholeNumber(1, MAX_PROFILE_SECONDS),
      defaultSeconds,
    )
    .action(async (slot: number, options: Options & { readonly seconds: number }) => {
      const client = await clientToAct(options);
      const path = `/v1/workers/${slot}/${kind}?seconds=${options.seconds}`;
      const { file } = await client.post<{ file: string }>(path);
      if (options.json) printJson({ slot, kind, file });
      else printLine(`worker=${slot}: ${file}; open it in Chrome's developer tools or in VS Code`);
    });
}

async function showStack(slot: number, { cluster, json }: Options): Promise<void> {
  const client = await findCluster(cluster);
  const stack = await client.get<WorkerStack>(`/v1/workers/${slot}/stack`, STACK_MS);
  if (json) printJson(stack);
  else printLines(linesOf(stack));
  if (stack.problem !== null) process.exitCode = 1;
}

function linesOf({ slot, pid, blockedForMs, requests, frames, problem }: WorkerStack): string[] {
  const worker = `worker=${slot} pid=${pid}`;
  // A problem leaves the frames and requests unknown.
  if (problem !== null) return [`${worker} has no stack to show: ${oneLine(problem)}`];
  const idle = frames.length > 0 ? 'running, not blocked' : 'idle';
  const state =
    blockedForMs === null ? `is ${idle}` : `has been blocked for ${seconds(blockedForMs)}, in`;
  const inFlight = requests.map(
    ({ method, path, forMs }) => `    ${oneLine(method)} ${oneLine(path)} for ${seconds(forMs)}`,
  );
  return [
    `${worker} ${state}`,
    ...frames.map((frame) => `    at ${oneLine(frame)}`),
    ...(inFlight.length > 0 ? ['in flight:', ...inFlight] : ['no request in flight']),
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
