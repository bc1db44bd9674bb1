import type { Metric } from 'prom-client';
import type { Dispatcher } from './dispatcher.js';
import type { Found } from '../offload.explorer.js';
import type { Task } from '../task/task.js';

/** Takes calls of tasks, and gives their results. */
export type Submitter = Pick<Dispatcher, 'submit'>;

/** The parts of this process that a remote runner needs. */
export interface RemoteSituation {
  /** The tasks of the app. A runner is told of those with a queue. */
  readonly tasks: readonly Task[];
  /** Runs a call in this process. */
  readonly local: Submitter;
  /** Calls that this process can run at a time. */
  readonly threads: number;
  /** Begins the names of metrics; `undefined` where nothing is measured. */
  readonly metricsPrefix: string | undefined;
}

/** Has calls of methods with a `queue` run by any machine. A package of its own provides it. */
export interface RemoteRunner extends Submitter {
  /** Must not wait for what may be away. @throws ClusterConfigurationError for what cannot work. */
  start(situation: RemoteSituation): Promise<void>;
  readonly metrics: readonly Metric[];
  /** Ends within a bounded time. */
  close(): Promise<void>;
}

/** Registered: two copies of this package in one process find the one runner. */
export const REMOTE_RUNNER = Symbol.for('nestjs-cluster.remote-runner');

/** The methods that name a queue in an app without queues. */
export function refusalsOfQueues(
  found: readonly Found[],
  remote: RemoteRunner | undefined,
): string[] {
  if (remote !== undefined) return [];
  return found.flatMap(({ name, definition: { options } }) =>
    options.queue === undefined
      ? []
      : `${name} has queue: "${options.queue}", and the app has no queues; add ClusterQueueModule.forRoot({ connection }) of nestjs-cluster/bullmq to the imports of its root module, or take queue away`,
  );
}

/** Starts the runner where there is something for it. @returns who takes the calls of a task. */
export async function startRemote(
  remote: RemoteRunner | undefined,
  situation: RemoteSituation,
): Promise<(task: Task) => Submitter> {
  const tasks = situation.tasks.filter(({ queue }) => queue !== undefined);
  await remote?.start({ ...situation, tasks });
  return (task) => (task.queue === undefined ? situation.local : remote!);
}
