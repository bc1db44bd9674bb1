import { Inject, Injectable, Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { isMainThread } from 'node:worker_threads';
import type { Metric } from 'prom-client';
import { ClusterConfigurationError, OnceAMinute } from '../../contract/errors/index.js';
import {
  type CarriedContexts,
  type RemoteRunner,
  type RemoteSituation,
  type Task,
  TaskAbortedException,
  TaskRejectedException,
  TaskTimeoutException,
  type Watch,
} from '../../offload/index.js';
import { Consumer, type ConsumerSituation } from './consumer.js';
import {
  announcedTask,
  type JobPayload,
  noticesKey,
  payloadOf,
  queueOfTask,
  repliesKey,
} from './redis/messages.js';
import { PendingCalls } from './redis/pending-calls.js';
import { kindOfRefusal, QueueClient, unavailable } from './redis/queue-client.js';
import type { CallOutcome, QueueMetrics } from './queue-metrics.js';
import { consumedQueues, QUEUE_OPTIONS, type ResolvedQueueOptions } from './queue-options.js';
import { RedisLink } from './redis/redis-link.js';
import { StreamReader } from './redis/stream-reader.js';

/** The maximum number of waiting calls of this process. Further calls are rejected. */
const MAX_PENDING = 10_000;

/** The time that Redis has to confirm a job, in ms: as long as a call may wait for a thread. */
export const PATIENCE_MS = 5_000;

/** The interval of announcements, which are repeated because they expire and consumers may start later. */
const ANNOUNCE_AGAIN_MS = 10_000;

/** Sends calls to the consumers of their queues, and consumes queues. */
@Injectable()
export class QueueRunner implements RemoteRunner {
  /** The consumers. Not a `#` field, because the drain looks for BullMQ workers in the fields of providers. */
  consumers: readonly Consumer[] = [];
  readonly #logger = new Logger('ClusterQueueModule');
  readonly #log = new OnceAMinute((line) => this.#logger.warn(line));
  /** The address for replies to this process. Each process has a new one at each start. */
  readonly #process = randomUUID();
  readonly #pending = new PendingCalls(this.#process, (reason) =>
    this.#metrics?.repliesDropped.inc({ reason }),
  );
  #metrics: QueueMetrics | undefined;
  #client: QueueClient | undefined;
  #reader: StreamReader | undefined;
  #local!: RemoteSituation['local'];
  /** When the queue of a single method was last announced, by the method's name. */
  readonly #announced = new Map<string, number>();

  constructor(@Inject(QUEUE_OPTIONS) private readonly options: ResolvedQueueOptions) {}

  get metrics(): readonly Metric[] {
    return Object.values(this.#metrics ?? {});
  }

  /** Whether Redis answers; `undefined` before the app's start. */
  get up(): boolean | undefined {
    return this.#client?.link.up;
  }

  /** Starts the queues. Does not wait for Redis, which may be away. */
  async start({ tasks, local, threads, measured }: RemoteSituation): Promise<void> {
    const { options } = this;
    const queues = [...new Set(tasks.map(({ queue }) => queue!))];
    const consumed = consumedQueues(options, queues);
    // Redis may refuse every call for the same reason, so each reason is logged once a minute.
    const warn = (line: string) => this.#log.say(line, kindOfRefusal(line));
    const link = new RedisLink(options, this.#logger);
    const client = new QueueClient(link, options, warn, queues);
    if (measured) {
      const { queueMetrics } = await import('./queue-metrics.js');
      this.#metrics = queueMetrics(tasks, () => client.lengths(queues));
    }
    const metrics = this.#metrics;
    const concurrency = options.concurrency ?? Math.max(1, threads);
    const situation = { client, local, metrics, options, concurrency, warn };
    const replies = repliesKey(options.prefix, this.#process);
    const streams = new Map([[replies, (text: string) => this.#pending.settle(text)]]);
    this.consumers = consumed.map((queue) => {
      const own = new Map(tasks.filter((task) => task.queue === queue).map((t) => [t.name, t]));
      streams.set(noticesKey(options.prefix, queue), (text) => {
        const task = own.get(announcedTask(text) ?? '');
        if (task) this.#consumeTask(queue, task, situation);
        else for (const each of this.consumers) if (each.label === queue) each.cancelJob(text);
      });
      return new Consumer(queue, own, situation);
    });
    this.#client = client;
    this.#local = local;
    this.#reader = new StreamReader(link.open(), streams, replies);
    void this.#reader.run();
  }

  /**
   * Returns the client if Redis answers.
   *
   * @param what the name of the call or job, for the error message.
   * @param did the outcome for the error message, such as 'was not looked up'. Default: 'was not begun'.
   * @throws TaskRejectedException while Redis is away.
   * @throws ClusterConfigurationError if the queues were not started.
   */
  async client(what: string, did?: string): Promise<QueueClient> {
    if (this.#client === undefined) {
      throw new ClusterConfigurationError(
        isMainThread
          ? `the queues are not there (asked for ${what}): the app has not started, or has no @CpuBound({ queue }) method, or no ClusterModule.forRoot(); check these`
          : `the queues are not there in a thread (asked for ${what}); use them in the method's caller`,
      );
    }
    if (await this.#client.link.isUp()) return this.#client;
    throw unavailable(what, did);
  }

  async submit(
    task: Task,
    args: readonly unknown[],
    contexts: CarriedContexts | undefined,
    watch?: Watch,
  ): Promise<unknown> {
    if (this.#pending.size >= MAX_PENDING) {
      this.#count(task, 'rejected');
      throw new TaskRejectedException(task.name, 'queue-full', 1);
    }
    const mayRunHere = this.options.onUnavailable === 'local';
    if (!(await this.#client!.link.isUp())) {
      this.#count(task, mayRunHere ? 'local' : 'rejected');
      if (mayRunHere) return this.#local.submit(task, args, contexts, watch);
      throw unavailable(task.name);
    }
    const payload = payloadOf(task.name, args, contexts, task.parameters);
    const askedAt = performance.now();
    try {
      const value = await this.#call(task, payload, watch);
      this.#count(task, 'completed');
      return value;
    } catch (error) {
      const outcome = outcomeOf(error);
      const isLocal = outcome === 'rejected' && mayRunHere;
      this.#count(task, isLocal ? 'local' : outcome);
      if (!isLocal) throw error;
      const { queueTimeoutMs } = task;
      const leftMs = Math.max(queueTimeoutMs / 2, queueTimeoutMs - (performance.now() - askedAt));
      const hurried = { ...task, queueTimeoutMs: leftMs };
      return await this.#local.submit(hurried, args, contexts, watch);
    }
  }

  async close(): Promise<void> {
    this.#pending.failAll(({ name }) => new TaskAbortedException(name));
    await Promise.all(this.consumers.map((each) => each.close()));
    this.#reader?.close();
    this.#client?.link.close();
  }

  /** Has a consumer run the call. Rejects if Redis does not confirm the job in time. */
  async #call(task: Task, payload: JobPayload, watch?: Watch): Promise<unknown> {
    const client = this.#client!;
    const { callTimeoutMs, onUnavailable } = this.options;
    // With 'local', waits half of the time for Redis. The other half is left for a local thread.
    const patienceMs = PATIENCE_MS / (onUnavailable === 'local' ? 2 : 1);
    let at = task.queue!;
    let added: Promise<void> | undefined;
    const send = () => {
      added = client.add(
        at,
        { ...payload, call },
        { jobId: id, removeOnComplete: true, removeOnFail: true },
        Math.min(callTimeoutMs, patienceMs),
        () => this.#pending.has(id),
      );
      added.catch((error: unknown) => this.#pending.fail(id, error));
    };
    const { id, result } = this.#pending.begin(task, callTimeoutMs, () => {
      at = queueOfTask(task.queue!, task.name);
      send();
      this.#announce(task);
    });
    const call = { id, replyTo: this.#process, deadline: client.link.now() + callTimeoutMs };
    send();
    const unwatch = watch?.(() => this.#pending.fail(id, new TaskAbortedException(task.name)));
    try {
      return await result;
    } catch (error) {
      if (outcomeOf(error) !== 'failed') {
        // Cancels the job even if Redis has not confirmed the job, because it may have been added.
        void added!.catch(() => {}).then(() => client.cancel(task.queue!, id, at));
      }
      throw error;
    } finally {
      unwatch?.();
    }
  }

  /** Consumes the queue of a single method, in which redirected calls wait. */
  #consumeTask(queue: string, task: Task, situation: ConsumerSituation): void {
    const name = queueOfTask(queue, task.name);
    // A draining process starts no consumer.
    const isOver = this.consumers.some((each) => each.isPaused() || each.closing !== undefined);
    if (isOver || this.consumers.some((each) => each.name === name)) return;
    const consumer = new Consumer(name, new Map([[task.name, task]]), situation, queue);
    this.consumers = [...this.consumers, consumer];
  }

  #announce({ name, queue }: Task): void {
    const now = performance.now();
    if (now - (this.#announced.get(name) ?? -Infinity) < ANNOUNCE_AGAIN_MS) return;
    this.#announced.set(name, now);
    void this.#client!.announce(queue!, name);
  }

  #count({ name }: Task, outcome: CallOutcome): void {
    this.#metrics?.calls.inc({ task: name, outcome });
  }
}

function outcomeOf(error: unknown): CallOutcome {
  if (error instanceof TaskAbortedException) return 'aborted';
  if (error instanceof TaskTimeoutException) return 'timeout';
  return error instanceof TaskRejectedException ? 'rejected' : 'failed';
}
