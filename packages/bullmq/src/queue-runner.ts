import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { Queue, QueueEvents } from 'bullmq';
import { TaskAbortedException, TaskRejectedException, TaskTimeoutException } from 'nestjs-cluster';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import {
  extension,
  type RemoteRunner,
  type RemoteSituation,
  type Task,
} from 'nestjs-cluster/extension';
import { Consumer } from './consumer.js';
import { type CallOutcome, QueueMetrics } from './metrics.js';
import { consumedQueues, QUEUE_OPTIONS, type ResolvedQueueOptions } from './options.js';
import { decode, encode, type JobData, type Outcome, VERSION } from './payload.js';
import { RedisLink } from './redis-link.js';

/** The maximum number of waiting calls of this process. Further calls are rejected. */
const MAX_PENDING = 10_000;

type QueuedTask = Task & { readonly queue: string };

interface Pending {
  readonly task: string;
  readonly resolve: (result: string) => void;
  readonly reject: (error: Error) => void;
}

/** Sends calls to the consumers of their queues, and consumes queues. */
@Injectable()
export class QueueRunner implements RemoteRunner {
  /** Not a `#` field, because the drain of nestjs-cluster looks for BullMQ workers in fields of providers. */
  consumers: readonly Consumer[] = [];
  readonly #logger = new Logger('ClusterQueueModule');
  readonly #queues = new Map<string, Queue>();
  readonly #events: QueueEvents[] = [];
  readonly #pending = new Map<string, Pending>();
  #situation: RemoteSituation | undefined;
  #link: RedisLink | undefined;
  #metrics: QueueMetrics | undefined;

  constructor(@Inject(QUEUE_OPTIONS) private readonly options: ResolvedQueueOptions) {}

  /** Whether Redis answers; `undefined` before the app's start. */
  get up(): boolean | undefined {
    return this.#link?.up;
  }

  /** Starts the queues. Does not wait for Redis, which may be away. */
  async start(situation: RemoteSituation): Promise<void> {
    const { options } = this;
    const { prefix } = options;
    const tasks = situation.tasks as readonly QueuedTask[];
    const names = [...new Set(tasks.map(({ queue }) => queue))];
    const consumed = consumedQueues(options, names);
    const link = (this.#link = new RedisLink(options, this.#logger));
    this.#situation = situation;
    for (const name of names) {
      // skipMetasUpdate: without it, a read would write a key.
      const skips = { skipVersionCheck: true, skipWaitingForReady: true, skipMetasUpdate: true };
      const queue = new Queue(name, { connection: link.commands, prefix, ...skips });
      queue.on('error', () => {}); // the link reports it
      this.#queues.set(name, queue);
      this.#follow(name, link);
    }
    extension()?.metrics((client) => {
      this.#metrics = new QueueMetrics(client, [...this.#queues.values()]);
      return { all: this.#metrics.all };
    });
    const warn = (line: string): void => extension()?.warn(line);
    const shared = { ...situation, link, options, warn, metrics: () => this.#metrics };
    this.consumers = consumed.map((name) => {
      const own = tasks.filter(({ queue }) => queue === name);
      return new Consumer(name, new Map(own.map((task) => [task.name, task])), shared);
    });
  }

  /** Settles the pending calls of a queue as their jobs end. */
  #follow(name: string, link: RedisLink): void {
    const { prefix } = this.options;
    const events = new QueueEvents(name, {
      connection: link.open(),
      prefix,
      skipVersionCheck: true,
    });
    events.on('error', () => {}); // the link reports it
    events.on('completed', ({ jobId, returnvalue }) => this.#take(jobId)?.resolve(returnvalue));
    events.on('failed', ({ jobId, failedReason }) =>
      this.#take(jobId)?.reject(new Error(failedReason)),
    );
    this.#events.push(events);
  }

  /** @throws TaskRejectedException, TaskTimeoutException, TaskAbortedException, or what the method throws. */
  async submit(...call: Parameters<RemoteRunner['submit']>): Promise<unknown> {
    const [task] = call;
    const mayRunHere = this.options.onUnavailable === 'local';
    try {
      const value = await this.#call(...call);
      this.#metrics?.ended(task.name, 'completed');
      return value;
    } catch (error) {
      const outcome = outcomeOf(error);
      const isLocal = mayRunHere && outcome === 'rejected';
      this.#metrics?.ended(task.name, isLocal ? 'local' : outcome);
      if (!isLocal) throw error;
      return this.#situation!.local.submit(...call);
    }
  }

  async #call(...[task, args, contexts, watch]: Parameters<RemoteRunner['submit']>) {
    if (this.#pending.size >= MAX_PENDING)
      throw new TaskRejectedException(task.name, 'queue-full', 1);
    const { callTimeoutMs } = this.options;
    const { queue, name } = task as QueuedTask;
    const given = encode({ args, contexts }, name);
    const id = randomUUID();
    // Before the job is added: its end may be told before Redis has confirmed it.
    const result = new Promise<string>((resolve, reject) => {
      this.#pending.set(id, { task: name, resolve, reject });
    });
    result.catch(() => {}); // it may fail while the job is added
    const late = new TaskTimeoutException(name, callTimeoutMs);
    const timer = setTimeout(() => this.#take(id)?.reject(late), callTimeoutMs);
    const unwatch = watch?.(() => this.#take(id)?.reject(new TaskAbortedException(name)));
    try {
      const options = { jobId: id, removeOnComplete: true, removeOnFail: true };
      await this.add(queue, name, { v: VERSION, given, call: true }, options);
      const outcome = decode(await result) as Outcome;
      if ('value' in outcome) return outcome.value;
      throw this.#situation!.restoreError(outcome.error);
    } catch (error) {
      // A job that still waits is not run. Redis may have added it although it did not confirm it.
      const left = outcomeOf(error) === 'failed' ? undefined : this.#queues.get(queue);
      void left?.remove(id).catch(() => {});
      throw error;
    } finally {
      this.#take(id);
      clearTimeout(timer);
      unwatch?.();
    }
  }

  /**
   * Adds a job.
   *
   * @throws TaskRejectedException if Redis does not confirm it within 5 s. It may have been added anyway.
   */
  async add(queue: string, task: string, data: JobData, options: object): Promise<void> {
    const known = await this.queue(queue, task);
    try {
      await known.add(task, data, options);
    } catch (error) {
      // Redis answers and refuses: it is full, or a replica.
      const { name, message } = error as Error;
      if (name === 'ReplyError') extension()?.warn(`Redis refuses jobs of ${task}: ${message}`);
      throw new TaskRejectedException(task, 'queue-unavailable', 1);
    }
  }

  /**
   * @param what the name of the call or job, for the error message.
   * @throws TaskRejectedException while Redis is away, ClusterConfigurationError for an unknown queue.
   */
  async queue(name: string, what: string): Promise<Queue> {
    const known = this.#queues.get(name);
    if (known === undefined) {
      throw new ClusterConfigurationError(
        `there is no queue ${name} (asked for ${what}): no @CpuBound({ queue }) method of the app has it, the app has no ClusterModule.forRoot(), it has not started, or this is a thread`,
      );
    }
    if (await this.#link!.isUp()) return known;
    throw new TaskRejectedException(what, 'queue-unavailable', 1);
  }

  has(queue: string): boolean {
    return this.#queues.has(queue);
  }

  /** The functions of nestjs-cluster. @throws ClusterConfigurationError before the start. */
  get situation(): RemoteSituation {
    if (this.#situation !== undefined) return this.#situation;
    throw new ClusterConfigurationError(
      'the queues have not started: the app has not started, has no @CpuBound({ queue }) method or no ClusterModule.forRoot(), or this is a thread',
    );
  }

  async close(): Promise<void> {
    for (const { task, reject } of this.#pending.values()) reject(new TaskAbortedException(task));
    await Promise.all(this.consumers.map((each) => each.close()));
    for (const each of this.#events) void each.close().catch(() => {});
    this.#link?.close();
  }

  #take(id: string): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }
}

function outcomeOf(error: unknown): CallOutcome {
  if (error instanceof TaskAbortedException) return 'aborted';
  if (error instanceof TaskTimeoutException) return 'timeout';
  return error instanceof TaskRejectedException ? 'rejected' : 'failed';
}
