import { type Command, InvalidArgumentError } from 'commander';
import type {
  ReloadAnswer,
  RestartAnswer,
  ScaleAnswer,
  StopAnswer,
} from '../../control/control-api.js';
import type { ClusterStatus } from '../../control/cluster-status.js';
import { ClusterRefusedError } from '../../contract/errors/index.js';
import { MAX_WORKERS } from '../../contract/options/index.js';
import { slotNumber } from '../cli/arguments.js';
import { clientFor, controlCommand, type ControlOptions } from './control-command.js';
import type { ControlClient } from './control-client.js';
import { printJson, printLine } from './view/output.js';
import { type Progress, watched } from './view/watched.js';

/** What is of interest while the command waits. */
const shown: Progress = ({ data }) => `  ${data.text}`;

export function addChangeCommands(program: Command): void {
  const reload = controlCommand(program, {
    usage: 'reload',
    summary: 'Replaces every worker by one of the program as it is on disk now',
    description:
      'Replaces every worker, slot by slot and without a gap, by one of the program as it is on disk now. ' +
      'If a worker of the new release fails meanwhile, the release before serves on, and the exit code is 1',
    example: 'reload --cluster shop',
  }).action(async (options: ControlOptions) => {
    const client = await clientFor(reload, options);
    const { cluster } = await client.get<ClusterStatus>('/v1/status');
    const ask = () => client.post<ReloadAnswer>('/v1/reload');
    await change(options, client, ask, slots(cluster), ({ outcome, generation, reason }) => ({
      isDone: outcome === 'completed',
      done: `reload gen=${generation} completed`,
      failed: `reload gen=${generation} ${outcome}, the release before it serves: ${reason}`,
    }));
  });

  const scale = controlCommand(program, {
    usage: 'scale',
    summary: 'Changes the number of workers',
    description: 'Changes the number of workers: to 4, by one more (+1) or one less (-1)',
    example: 'scale +1',
  })
    .argument('<workers>', '4, +1 or -1', workersWanted)
    .action(async (wanted: Wanted, options: ControlOptions) => {
      const client = await clientFor(scale, options);
      const { cluster } = await client.get<ClusterStatus>('/v1/status');
      const workers = wanted.relative ? cluster.desired + wanted.by : wanted.by;
      if (workers < 1 || workers > MAX_WORKERS) {
        throw new ClusterRefusedError(
          `there cannot be ${workers} workers, only 1 to ${MAX_WORKERS}`,
        );
      }
      const ask = () => client.post<ScaleAnswer>('/v1/scale', { workers });
      await change(options, client, ask, shown, ({ from, ready }) => ({
        isDone: ready >= workers,
        done: `scaled from ${from} to ${workers} workers`,
        failed: `scaled from ${from} to ${workers} workers, of which ${ready} are ready: the log of the cluster says why`,
      }));
    });

  const restart = controlCommand(program, {
    usage: 'restart',
    summary: 'Replaces one worker without a gap',
    description: 'Replaces the worker of a slot, without a gap, by one of the same program',
    example: 'restart 2',
  })
    .argument('<slot>', 'number of the slot, from 0; status shows them', slotNumber)
    .action(async (slot: number, options: ControlOptions) => {
      const client = await clientFor(restart, options);
      const ask = () => client.post<RestartAnswer>(`/v1/workers/${slot}/restart`);
      await change(options, client, ask, shown, ({ outcome, reason }) => ({
        isDone: outcome === 'completed',
        done: `worker ${slot} restarted`,
        failed: `worker ${slot} was not restarted: ${reason}`,
      }));
    });

  const stop = controlCommand(program, {
    usage: 'stop',
    summary: 'Drains every worker and ends the cluster',
    description: 'Drains every worker and ends the cluster, as SIGTERM does',
    example: 'stop --cluster shop',
  }).action(async (options: ControlOptions) => {
    const client = await clientFor(stop, options);
    const ask = () => client.post<StopAnswer>('/v1/stop');
    await change(options, client, ask, shown, ({ exitCode }) => ({
      isDone: exitCode === 0,
      done: 'stopped',
      failed: `stopped with exit code ${exitCode}: the log of the cluster says why`,
    }));
  });
}

/** The outcome of a change and the text that reports it. */
interface Outcome {
  readonly isDone: boolean;
  readonly done: string;
  readonly failed: string;
}

async function change<Answer extends object>(
  { json }: ControlOptions,
  client: ControlClient,
  ask: () => Promise<Answer>,
  progress: Progress,
  outcomeOf: (answer: Answer) => Outcome,
): Promise<void> {
  const answer = await watched(client, json ? undefined : progress, ask);
  const { isDone, done, failed } = outcomeOf(answer);
  if (json) {
    printJson(answer);
    process.exitCode = isDone ? 0 : 1;
  } else if (isDone) {
    printLine(done);
  } else {
    throw new ClusterRefusedError(failed);
  }
}

/** Counts the slots that a reload is done with. */
function slots({ desired }: ClusterStatus['cluster']): Progress {
  let done = 0;
  return (told) => {
    const { name, event, text } = told.data;
    if (name !== 'worker-stopped') return `  ${text}`;
    if ((event as { readonly cause?: unknown }).cause === 'reload') done += 1;
    return `  [${done}/${desired}] ${text}`;
  };
}

interface Wanted {
  readonly relative: boolean;
  readonly by: number;
}

function workersWanted(text: string): Wanted {
  const [, sign] = /^([+-]?)\d{1,3}$/.exec(text) ?? [];
  if (sign !== undefined) return { relative: sign !== '', by: Number(text) };
  throw new InvalidArgumentError(`expected a number from 1 to ${MAX_WORKERS}, or +n or -n.`);
}
