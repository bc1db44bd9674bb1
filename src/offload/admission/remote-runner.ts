import type { Dispatcher } from './dispatcher.js';
import type { Found } from '../offload.explorer.js';
import type { Task } from '../task/task.js';

/** Accepts calls of tasks, and returns their results. */
export type Submitter = Pick<Dispatcher, 'submit'>;

/** The parts of this process that a remote runner needs. */
export interface RemoteSituation {
  /** The tasks of the app. A remote runner gets only the tasks with a queue. */
  readonly tasks: readonly Task[];
  /** Runs a call in this process. */
  readonly local: Submitter;
  /** Number of calls that this process can run at the same time. */
  readonly threads: number;
  /** Whether the app has metrics. */
  readonly measured: boolean;
}

/** Lets any machine run the calls of methods with a `queue`. `nestjs-cluster/bullmq` provides it. */
export interface RemoteRunner extends Submitter {
  /** Must not wait for servers that may be down. @throws ClusterConfigurationError for wrong options. */
  start(situation: RemoteSituation): Promise<void>;
  readonly metrics: readonly object[];
  /** Ends within a bounded time. */
  close(): Promise<void>;
}

/** Injection token. A registered symbol, so that two copies of this package find the same runner. */
export const REMOTE_RUNNER = Symbol.for('nestjs-cluster.remote-runner');

/** An error for each method that names a queue, if the app has no remote runner. */
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

/** Starts the remote runner, if there is one. @returns a function that chooses the runner of a task. */
export async function startRemote(
  remote: RemoteRunner | undefined,
  situation: RemoteSituation,
): Promise<(task: Task) => Submitter> {
  const tasks = situation.tasks.filter(({ queue }) => queue !== undefined);
  await remote?.start({ ...situation, tasks });
  return (task) => (task.queue === undefined ? situation.local : remote!);
}
