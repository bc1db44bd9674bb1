import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { type JobsOptions, Queue, QueueEvents } from 'bullmq';
import { TaskAbortedException, TaskRejectedException, TaskTimeoutException } from 'nestjs-cluster';
import {
  extension,
  type MetricsClient,
  type RemoteRunner,
  type RemoteSituation,
  type Task,
} from 'nestjs-cluster/extension';
import { Consumer } from './consumer.js';
import { consumedQueues, QUEUE_OPTIONS, type ResolvedQueueOptions } from './options.js';
import { decode, encode, type JobData, type Outcome } from './payload.js';
import { RedisLink } from './redis-link.js';

/** Maximum number of waiting calls in this process. Further calls are rejected. */
const MAX_PENDING = 10_000;

const STATES = ['waiting', 'active', 'delayed', 'failed'] as const;

type QueuedTask = Task & { readonly queue: string };

interface Pending {
  readonly task: string;
  readonly resolve: (result: string) => void;
  readonly reject: (error: Error) => void;
}

/** Sends calls to the consumers of their queues, and consumes queues. */
@Injectable()
export class QueueRunner implements RemoteRunner {
  /** Not a `#` field, because nestjs-cluster searches providers' fields for BullMQ workers to drain. */
  consumers: readonly Consumer[] = [];
  readonly #logger = new Logger('ClusterQueueModule');
  readonly queues = new Map<string, Queue>();
  readonly #events: QueueEvents[] = [];
  readonly #pending = new Map<string, Pending>();
  /** Functions of nestjs-cluster; `undefined` before the app starts, or if no method has a queue. */
  situation: RemoteSituation | undefined;
  #link: RedisLink | undefined;

  constructor(@Inject(QUEUE_OPTIONS) private readonly options: ResolvedQueueOptions) {}

  /** Whether Redis answers; `undefined` before the app starts. */
  get up(): boolean | undefined {
    return this.#link?.up;
  }

  /** Starts the queues. Waits at most 1 s for Redis. */
  async start(situation: RemoteSituation): Promise<void> {
    const { options } = this;
    const { prefix } = options;
    const tasks = situation.tasks as readonly QueuedTask[];
    const names = [...new Set(tasks.map(({ queue }) => queue))];
    const consumed = consumedQueues(options, names);
    const link = (this.#link = new RedisLink(options.connection, this.#logger));
    await link.opened();
    for (const name of names) {
      // Without skipMetasUpdate, BullMQ writes a key even for reads.
      const skips = { skipVersionCheck: true, skipWaitingForReady: true, skipMetasUpdate: true };
      const queue = new Queue(name, { connection: link.commands, prefix, ...skips });
      queue.on('error', () => {}); // the link reports it
      this.queues.set(name, queue);
      this.#follow(name, link);
    }
    this.situation = situation;
    extension()?.metrics((client) => ({ all: [jobsGauge(client, [...this.queues.values()])] }));
    const warn = (line: string): void => extension()?.warn(line);
    const shared = { ...situation, link, options, warn };
    this.consumers = consumed.map((name) => {
      const own = tasks.filter(({ queue }) => queue === name);
      return new Consumer(name, new Map(own.map((task) => [task.name, task])), shared);
    });
  }

  /** Settles the pending calls of a queue when their jobs end. */
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

  /** @throws TaskRejectedException, TaskTimeoutException, TaskAbortedException, or the error of the method. */
  async submit(...call: Parameters<RemoteRunner['submit']>): Promise<unknown> {
    try {
      return await this.#call(...call);
    } catch (error) {
      const isRejected = error instanceof TaskRejectedException;
      if (!isRejected || this.options.onUnavailable !== 'local') throw error;
      return this.situation!.local.submit(...call);
    }
  }

  async #call(...[task, args, trace, watch]: Parameters<RemoteRunner['submit']>) {
    if (this.#pending.size >= MAX_PENDING) throw new TaskRejectedException(task.name, 'queue-full');
    const { callTimeoutMs } = this.options;
    const { queue, name } = task as QueuedTask;
    const given = encode({ args, trace }, name);
    const id = randomUUID();
    // Created before the job is added, because the job may end before Redis confirms it.
    const result = new Promise<string>((resolve, reject) => {
      this.#pending.set(id, { task: name, resolve, reject });
    });
    result.catch(() => {}); // the job may fail before the code below awaits the result
    const late = new TaskTimeoutException(name, callTimeoutMs);
    const timer = setTimeout(() => this.#take(id)?.reject(late), callTimeoutMs);
    const unwatch = watch?.(() => this.#take(id)?.reject(new TaskAbortedException(name)));
    try {
      const options = { jobId: id, removeOnComplete: true, removeOnFail: true };
      await this.add(queue, name, { given, call: true }, options);
      const outcome = decode(await result) as Outcome;
      if ('value' in outcome) return outcome.value;
      throw this.situation!.restoreError(outcome.error);
    } catch (error) {
      // Removes the job if it is still waiting. Redis may have added it without confirming it.
      void this.queues
        .get(queue)!
        .remove(id)
        .catch(() => {});
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
   * @throws TaskRejectedException if Redis does not confirm the job within 5 s. Redis may have added it anyway.
   */
  async add(queue: string, task: string, data: JobData, options: JobsOptions): Promise<void> {
    try {
      await this.queues.get(queue)!.add(task, data, options);
    } catch (error) {
      // Redis is full, hangs or is a replica, or BullMQ rejects the options.
      if (this.up) extension()?.warn(`job for ${task} was not queued: ${(error as Error).message}`);
      throw new TaskRejectedException(task, 'queue-unavailable');
    }
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

/** The number of jobs in Redis, from all machines. Empty while Redis is unavailable. */
function jobsGauge({ Gauge }: MetricsClient, queues: readonly Queue[]): object {
  return new Gauge({
    name: 'nestjs_cluster_queue_jobs',
    help: 'Jobs in Redis, all machines',
    labelNames: ['queue', 'state'],
    registers: [],
    aggregator: 'max', // all workers report the same numbers
    async collect() {
      this.reset();
      for (const queue of queues) {
        const counts = await queue.getJobCounts(...STATES).catch(() => ({}));
        for (const [state, count] of Object.entries(counts)) {
          this.set({ queue: queue.name, state }, count);
        }
      }
    },
  });
}
