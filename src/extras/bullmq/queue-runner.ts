import { Inject, Injectable, Logger } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { isMainThread } from 'node:worker_threads';
import type { Metric } from 'prom-client';
import { ClusterConfigurationError } from '../../errors/index.js';
import {
  type CallTrace,
  type CarriedContexts,
  type RemoteRunner,
  type RemoteSituation,
  type Task,
  TaskAbortedException,
  TaskRejectedException,
  TaskTimeoutException,
  type Watch,
} from '../../offload/index.js';
import { Consumer } from './consumer.js';
import { Consumers } from './consumers.js';
import { pack } from './encoding.js';
import { VERSION } from './messages.js';
import { PendingCalls } from './pending-calls.js';
import { QueueClient, unavailable } from './queue-client.js';
import { QueueKeys } from './queue-keys.js';
import { type CallOutcome, type QueueObserver, UNOBSERVED } from './queue-observer.js';
import { consumedQueues, QUEUE_OPTIONS, type ResolvedQueueOptions } from './queue-options.js';
import { queueTelemetry, type RunnerOptions } from './queue-telemetry.js';
import { QuietLog } from './quiet-log.js';
import { RedisLink } from './redis-link.js';
import { BLOCK_MS, StreamReader } from './stream-reader.js';

/** More calls of a process than these do not wait. */
const MAX_PENDING = 10_000;

/** A process that has just started gives Redis so long to be there. */
const FIRST_CONNECTION_MS = 1_000;

/** Has calls run by whoever consumes their queues, and consumes queues. */
@Injectable()
export class QueueRunner implements RemoteRunner {
  /** A field, so that a drain finds it. */
  readonly consumers = new Consumers();
  readonly #logger = new Logger('ClusterQueueModule');
  readonly #log = new QuietLog((line) => this.#logger.warn(line));
  /** Where replies go: of this process, and of this start of it. */
  readonly #process = randomUUID();
  readonly #pending = new PendingCalls(this.#process, (why) => this.#observer.replyDropped(why));
  #observer: QueueObserver = UNOBSERVED;
  #started:
    | { readonly link: RedisLink; readonly client: QueueClient; readonly reader: StreamReader }
    | undefined;
  #local!: RemoteSituation['local'];

  constructor(@Inject(QUEUE_OPTIONS) private readonly options: ResolvedQueueOptions) {}

  get metrics(): readonly Metric[] {
    return this.#observer.metrics;
  }

  /** Whether Redis answers; `undefined` before the app's start. */
  get up(): boolean | undefined {
    return this.#started?.link.up;
  }

  /** Waits for nothing: Redis may be away. */
  async start({ tasks, local, threads, metricsPrefix }: RemoteSituation): Promise<void> {
    const telemetry = await queueTelemetry(this.options.telemetry);
    const options = { ...this.options, telemetry };
    const queues = [...new Set(tasks.map(({ queue }) => queue!))];
    const consumed = consumedQueues(options, queues);
    this.#local = local;
    const { link, client } = this.#connect(options);
    if (metricsPrefix !== undefined) {
      const { QueueMetrics } = await import('./queue-metrics.js');
      this.#observer = new QueueMetrics(metricsPrefix, tasks, () => client.lengths(queues));
    }
    const consumers = consumed.map((queue) => {
      const own = new Map(tasks.filter((task) => task.queue === queue).map((t) => [t.name, t]));
      return new Consumer(queue, own, {
        link,
        local,
        observer: this.#observer,
        options,
        concurrency: options.concurrency ?? Math.max(1, threads),
        reply: (call, reply) => client.reply(call, reply),
        report: (line) => this.#log.warn(line),
      });
    });
    this.consumers.start(link, consumers);
    const keys = new QueueKeys(options.prefix);
    const reader = new StreamReader(
      link.open({ maxRetriesPerRequest: null, commandTimeout: 2 * BLOCK_MS }),
      [
        {
          key: keys.repliesTo(this.#process),
          own: true,
          onEntry: (text) => this.#pending.settle(text),
        },
        ...consumed.map((queue) => ({
          key: keys.cancelled(queue),
          own: false,
          onEntry: (call: string) => this.consumers.cancel(queue, call),
        })),
      ],
    );
    this.#started = { link, client, reader };
    void reader.run();
  }

  /** @throws TaskRejectedException while Redis is away, ClusterConfigurationError where nothing was started. */
  async client(what: string): Promise<QueueClient> {
    if (this.#started === undefined) {
      throw new ClusterConfigurationError(
        isMainThread
          ? `the queues are not there (asked for ${what}): the app has not started, or has no @CpuBound({ queue }) method, or no ClusterModule.forRoot(); see to these`
          : `the queues are not there in a thread (asked for ${what}); use them in the method's caller`,
      );
    }
    const { link, client } = this.#started;
    if (await this.#isUp(link)) return client;
    throw unavailable(what);
  }

  async submit(
    task: Task,
    args: readonly unknown[],
    contexts: CarriedContexts | undefined,
    watch?: Watch,
    trace?: CallTrace,
  ): Promise<unknown> {
    const { link, client } = this.#started!;
    if (this.#pending.size >= MAX_PENDING) {
      this.#observer.called(task.name, 'rejected');
      throw new TaskRejectedException(task.name, 'queue-full', 1);
    }
    if (!(await this.#isUp(link))) return this.#withoutRedis(task, args, contexts, watch, trace);
    const { callTimeoutMs } = this.options;
    const packed = args.map((each, i) => {
      return pack(each, `argument ${task.parameters[i] ?? i + 1} of ${task.name}`);
    });
    const { id, result } = this.#pending.begin(task, callTimeoutMs, trace);
    const deadline = Date.now() + callTimeoutMs;
    const added = client.add(
      task.queue!,
      {
        v: VERSION,
        task: task.name,
        args: packed,
        ...(contexts && { contexts: pack(contexts, 'a context') }),
        call: { id, replyTo: this.#process, deadline: deadline + link.aheadMs },
      },
      { jobId: id, removeOnComplete: true, removeOnFail: true },
      deadline,
      () => this.#pending.has(id),
    );
    added.catch((error: unknown) => this.#pending.fail(id, error));
    const unwatch = watch?.(() => this.#pending.fail(id, new TaskAbortedException(task.name)));
    try {
      const value = await result;
      this.#observer.called(task.name, 'completed');
      return value;
    } catch (error) {
      const outcome = outcomeOf(error);
      this.#observer.called(task.name, outcome);
      if (outcome === 'aborted' || outcome === 'timeout') {
        // Also if nobody has said that it was added: it may have been.
        void added.catch(() => {}).then(() => client.cancel(task.queue!, id));
      }
      throw error;
    } finally {
      unwatch?.();
    }
  }

  async close(): Promise<void> {
    this.#pending.failAll(({ name }) => new TaskAbortedException(name));
    await this.consumers.close();
    this.#started?.reader.close();
    this.#started?.link.close();
  }

  #connect(options: RunnerOptions): { link: RedisLink; client: QueueClient } {
    const link = new RedisLink(options, this.#logger);
    return { link, client: new QueueClient(link, options, this.#log) };
  }

  async #isUp(link: RedisLink): Promise<boolean> {
    if (link.up || link.away) return link.up;
    return link.whenUp(Date.now() + FIRST_CONNECTION_MS);
  }

  #withoutRedis(
    task: Task,
    args: readonly unknown[],
    contexts: CarriedContexts | undefined,
    watch: Watch | undefined,
    trace: CallTrace | undefined,
  ): Promise<unknown> {
    const isLocal = this.options.onUnavailable === 'local';
    this.#observer.called(task.name, isLocal ? 'local' : 'rejected');
    if (!isLocal) throw unavailable(task.name);
    return this.#local.submit(task, args, contexts, watch, trace);
  }
}

function outcomeOf(error: unknown): CallOutcome {
  if (error instanceof TaskAbortedException) return 'aborted';
  if (error instanceof TaskTimeoutException) return 'timeout';
  return error instanceof TaskRejectedException ? 'rejected' : 'failed';
}
