import { type JobsOptions, Queue } from 'bullmq';
import { setTimeout as delay } from 'node:timers/promises';
import { UncloneableValueError } from '../../errors/index.js';
import { TaskRejectedException } from '../../offload/index.js';
import type { JobPayload, Reply } from './messages.js';
import { QueueKeys } from './queue-keys.js';
import type { QueueLengths } from './queue-metrics.js';
import type { QuietLog } from './quiet-log.js';
import type { RunnerOptions } from './queue-telemetry.js';
import type { RedisLink } from './redis-link.js';

const RETRY_MS = 50;
/** Refusals of a Redis that is full, cannot write or changes its role: for a while. */
const PASSES = /^(OOM|MISCONF|LOADING|BUSY|READONLY|MASTERDOWN|NOREPLICAS|CLUSTERDOWN|TRYAGAIN)\b/;
const REFUSED_RETRY_MS = 250;
/** Keys of a process or a queue that is gone remain for so long. */
const KEY_SECONDS = 600;
const MAX_REPLIES = 10_000;
const MAX_CANCELLED = 1_000;
const STATES = ['waiting', 'active', 'delayed', 'failed'] as const;

/** Writes to Redis: jobs, replies, and word of calls that nobody waits for. */
export class QueueClient {
  readonly #queues = new Map<string, Queue>();
  readonly #keys: QueueKeys;
  /** Until when a key need not be told again that it is in use; ms since the epoch. */
  readonly #lasting = new Map<string, number>();

  constructor(
    private readonly link: RedisLink,
    private readonly options: RunnerOptions,
    private readonly log: Pick<QuietLog, 'warn'>,
  ) {
    this.#keys = new QueueKeys(options.prefix);
  }

  queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      const { prefix, telemetry } = this.options;
      queue = new Queue(name, {
        connection: this.link.commands,
        prefix,
        skipVersionCheck: true,
        skipWaitingForReady: true,
        ...(telemetry && { telemetry }),
      });
      queue.on('error', () => {}); // the link tells of it
      this.#queues.set(name, queue);
    }
    return queue;
  }

  /**
   * Adds a job. Redis may go away before it has said so: then the same is sent again, and is one
   * job by its id.
   *
   * @param wanted whether there is still somebody for it.
   * @throws TaskRejectedException where it cannot be added by then (ms since the epoch).
   */
  async add(
    queue: string,
    payload: JobPayload,
    options: JobsOptions & { jobId: string },
    deadline: number,
    wanted: () => boolean = () => true,
  ): Promise<void> {
    const { maxPayloadBytes } = this.options;
    const { task } = payload;
    for (;;) {
      try {
        await this.queue(queue).add(task, payload, { ...options, sizeLimit: maxPayloadBytes });
        return;
      } catch (error) {
        const { name, message } = error as Error;
        if (message.includes('exceeds the limit')) {
          throw new UncloneableValueError(
            `the arguments of ${task} have more than maxPayloadBytes (${maxPayloadBytes}) as JSON; store them elsewhere and pass where, or raise maxPayloadBytes`,
          );
        }
        if (name === 'ReplyError' || name === 'TypeError') {
          this.log.warn(`queue ${queue} does not take ${task}: ${message}`);
          throw unavailable(task);
        }
        this.link.failed(error as Error);
        await delay(RETRY_MS);
        const up = wanted() && (await this.link.whenUp(deadline));
        if (!up || !wanted() || Date.now() >= deadline) throw unavailable(task);
      }
    }
  }

  /** A reply that cannot be written before its call is given up is not written. */
  async reply({ replyTo, deadline }: NonNullable<JobPayload['call']>, reply: Reply): Promise<void> {
    const key = this.#keys.repliesTo(replyTo);
    let text = JSON.stringify(reply);
    if (Buffer.byteLength(text) > this.options.maxPayloadBytes + 1_024) {
      text = JSON.stringify({ ...reply, ...TOO_LARGE });
    }
    while (Date.now() < deadline) {
      try {
        const added = this.link.commands.xadd(key, 'MAXLEN', '~', MAX_REPLIES, '*', 'm', text);
        await Promise.all([added, ...this.#expire(key)]);
        return;
      } catch (error) {
        const { name, message } = error as Error;
        if (name === 'ReplyError') {
          // Nobody else is told.
          this.log.warn(`Redis of the queues does not take a reply: ${message}`);
          if (!PASSES.test(message)) return;
          await delay(REFUSED_RETRY_MS);
          continue;
        }
        // The next one has the key last, whatever became of this one.
        this.#lasting.delete(key);
        this.link.failed(error as Error);
        await delay(RETRY_MS);
        await this.link.whenUp(deadline);
      }
    }
  }

  /** Removes a job that waits; has one that runs ended. */
  async cancel(queue: string, id: string): Promise<void> {
    try {
      if ((await this.queue(queue).remove(id)) === 1) return;
    } catch {
      // it is running
    }
    const key = this.#keys.cancelled(queue);
    const { commands } = this.link;
    await Promise.all([
      commands.xadd(key, 'MAXLEN', '~', MAX_CANCELLED, '*', 'm', id),
      ...this.#expire(key),
    ]).catch(() => {}); // its deadline ends it
  }

  /** Has a key last for a while from now; once in a part of that. */
  #expire(key: string): Promise<unknown>[] {
    const now = Date.now();
    if (now < (this.#lasting.get(key) ?? 0)) return [];
    // Of processes that are gone nothing is kept.
    if (this.#lasting.size >= MAX_REPLIES) this.#lasting.clear();
    this.#lasting.set(key, now + (KEY_SECONDS * 1_000) / 4);
    return [this.link.commands.expire(key, KEY_SECONDS)];
  }

  async lengths(queues: readonly string[]): Promise<QueueLengths> {
    const counts = queues.map(async (name) => {
      const queue = this.queue(name);
      return [name, await queue.getJobCounts(...STATES)] as const;
    });
    return Object.fromEntries(await Promise.all(counts));
  }
}

const TOO_LARGE = {
  error: {
    kind: 'error',
    classes: [],
    name: 'Error',
    message: 'the error of the call is larger than maxPayloadBytes',
    properties: {},
  },
};

export function unavailable(task: string): TaskRejectedException {
  return new TaskRejectedException(task, 'queue-unavailable', 1);
}
