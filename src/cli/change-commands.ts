import { type Command, InvalidArgumentError } from 'commander';
import type { ClusterStatus } from '../control/cluster-status.js';
import { ClusterRefusedError } from '../contract/errors/index.js';
import { MAX_WORKERS } from '../contract/options/schema.js';
import { SLOT_ARGUMENT } from './arguments.js';
import { type Changed, reload, restart, scale, stop } from './changes.js';
import { clientToAct, controlCommand, type ControlOptions } from './control-command.js';
import type { ControlClient } from './control-client.js';
import { printJson, printLine } from './view/output.js';
import { watched } from './view/watched.js';

export function addChangeCommands(program: Command): void {
  controlCommand(program, {
    name: 'reload',
    summary: 'Replaces every worker by one of the program as it is on disk now',
    description:
      'Replaces every worker, slot by slot and without a gap, by one of the program as it is on disk now. ' +
      'If a worker of the new release fails, the release before it serves on, and the exit code is 1',
    example: 'reload --cluster shop',
  }).action(async (options: ControlOptions) => {
    const client = await clientToAct(options);
    await change(options, client, () => reload(client));
  });

  addScaleCommand(program);

  controlCommand(program, {
    name: 'restart',
    summary: 'Replaces one worker without a gap',
    description: 'Replaces the worker of a slot, without a gap, by one of the same program',
    example: 'restart 2',
  })
    .argument(...SLOT_ARGUMENT)
    .action(async (slot: number, options: ControlOptions) => {
      const client = await clientToAct(options);
      await change(options, client, () => restart(client, slot));
    });

  controlCommand(program, {
    name: 'stop',
    summary: 'Drains every worker and ends the cluster',
    description: 'Drains every worker and ends the cluster, as SIGTERM does',
    example: 'stop --cluster shop',
  }).action(async (options: ControlOptions) => {
    const client = await clientToAct(options);
    await change(options, client, () => stop(client));
  });
}

interface ScaleOptions extends ControlOptions {
  readonly force: boolean;
}

function addScaleCommand(program: Command): void {
  controlCommand(program, {
    name: 'scale',
    summary: 'Changes the number of workers',
    description: 'Changes the number of workers: to 4, by one more (+1) or one less (-1)',
    example: 'scale +1',
  })
    .argument('<workers>', '4, +1 or -1', workersWanted)
    .option('--force', 'also start more than four workers for each core', false)
    .action(async ({ isRelative, by }: WorkersWanted, options: ScaleOptions) => {
      const client = await clientToAct(options);
      const { cluster } = await client.get<ClusterStatus>('/v1/status');
      const workers = isRelative ? cluster.desired + by : by;
      if (workers < 1 || workers > MAX_WORKERS) {
        throw new ClusterRefusedError(
          `there cannot be ${workers} workers, only 1 to ${MAX_WORKERS}`,
        );
      }
      await change(options, client, () => scale(client, workers, options.force));
    });
}

async function change(
  { json }: ControlOptions,
  client: ControlClient,
  ask: () => Promise<Changed>,
): Promise<void> {
  const { answer, done, text } = await watched(client, !json, ask);
  if (json) {
    printJson(answer);
    process.exitCode = done ? 0 : 1;
  } else if (done) {
    printLine(text);
  } else {
    throw new ClusterRefusedError(text);
  }
}

interface WorkersWanted {
  /** Whether `by` is added to the present number of workers. Otherwise `by` is the new number. */
  readonly isRelative: boolean;
  readonly by: number;
}

function workersWanted(text: string): WorkersWanted {
  const [, sign] = /^([+-]?)\d{1,3}$/.exec(text) ?? [];
  if (sign !== undefined) return { isRelative: sign !== '', by: Number(text) };
  throw new InvalidArgumentError(`expected a number from 1 to ${MAX_WORKERS}, +n or -n.`);
}
