import { type JobsOptions, Queue } from 'bullmq';
import { setTimeout as delay } from 'node:timers/promises';
import { ClusterUncloneableError } from '../../../contract/errors/index.js';
import { describeError, TaskRejectedException } from '../../../offload/index.js';
import { MAX_TIMER_MS } from '../../../contract/options/check/validate.js';
import { packError } from './encoding.js';
import { announcementOf, type JobPayload, noticesKey, repliesKey, type Reply } from './messages.js';
import type { ResolvedQueueOptions } from '../queue-options.js';
import type { RedisLink } from './redis-link.js';

const RETRY_MS = 50;
/** Temporary refusals: Redis is full, cannot write or changes its role. */
const PASSES = /^(OOM|MISCONF|LOADING|BUSY|READONLY|MASTERDOWN|NOREPLICAS|CLUSTERDOWN|TRYAGAIN)\b/;
/** How long the streams of a process or queue that is gone remain. */
const KEY_SECONDS = 600;
const MAX_KEYS = 10_000;
const MAX_ENTRIES = 10_000;
const STATES = ['waiting', 'active', 'delayed', 'failed'] as const;

/** Jobs by state, by queue. */
export type QueueLengths = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Writes jobs, replies and notices to Redis. */
export class QueueClient {
  readonly #queues = new Map<string, Queue>();
  /** When the expiry of each key has to be renewed; ms since the epoch. */
  readonly #lasting = new Map<string, number>();

  constructor(
    readonly link: RedisLink,
    private readonly options: ResolvedQueueOptions,
    private readonly warn: (line: string) => void,
    /** The queues of the app's methods. */
    private readonly names: readonly string[],
  ) {}

  /** Whether a method of the app has this queue. */
  has(queue: string): boolean {
    return this.names.includes(queue);
  }

  /** @param name a queue of the app, never a string from outside: each takes memory for good. */
  queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      const { prefix, telemetry } = this.options;
      queue = new Queue(name, {
        connection: this.link.commands,
        prefix,
        skipVersionCheck: true,
        skipWaitingForReady: true,
        // Otherwise a read writes a key.
        skipMetasUpdate: true,
        ...(telemetry && { telemetry }),
      });
      queue.on('error', () => {}); // the link reports it
      this.#queues.set(name, queue);
    }
    return queue;
  }

  /**
   * Adds a job.
   *
   * @param withinMs how long Redis has to confirm it.
   * @param wanted whether the job is still needed.
   * @throws TaskRejectedException if nothing confirmed it in time. It may have been added anyway.
   */
  async add(
    queue: string,
    payload: JobPayload,
    options: JobsOptions & { jobId: string },
    withinMs: number,
    wanted: () => boolean = () => true,
  ): Promise<void> {
    const { maxPayloadBytes } = this.options;
    const { task } = payload;
    const given = { ...options, sizeLimit: maxPayloadBytes };
    const added = await this.#insist(
      this.link.now() + withinMs,
      () => (wanted() ? this.queue(queue).add(task, payload, given) : undefined),
      ({ name, message }) => {
        if (message.includes('exceeds the limit')) {
          throw new ClusterUncloneableError(
            `the arguments of ${task} have more than maxPayloadBytes (${maxPayloadBytes}) as JSON; store them elsewhere and pass where, or raise maxPayloadBytes`,
          );
        }
        const isRefused = name === 'ReplyError' || name === 'TypeError';
        if (isRefused) this.warn(`queue ${queue} does not take ${task}: ${message}`);
        return !isRefused;
      },
    );
    if (!added) throw unavailable(task);
  }

  /** Writes a reply, until the deadline of its call. */
  async reply({ replyTo, deadline }: NonNullable<JobPayload['call']>, reply: Reply): Promise<void> {
    const key = repliesKey(this.options.prefix, replyTo);
    let text = JSON.stringify(reply);
    if (Buffer.byteLength(text) > this.options.maxPayloadBytes + 1_024) {
      const error = new Error('the error of the call is larger than maxPayloadBytes');
      text = JSON.stringify({ ...reply, error: packError(describeError(error)) });
    }
    await this.#insist(
      deadline,
      () => this.#append(key, text),
      ({ name, message }) => {
        // Whatever has happened, the next reply renews the expiry of the key.
        this.#lasting.delete(key);
        if (name !== 'ReplyError') return true;
        this.warn(`Redis of the queues does not take a reply: ${message}`);
        return PASSES.test(message);
      },
    );
  }

  /**
   * Removes the job of a waiting call, or ends it if it runs. Redis may be away, so this tries for as
   * long as the call could have waited.
   *
   * @param at the queue of the job: its own, or the queue of its method alone.
   */
  async cancel(queue: string, id: string, at = queue): Promise<void> {
    const end = async () => {
      if ((await this.queue(at).remove(id)) === 0) await this.#append(this.#noticesOf(queue), id);
    };
    await this.#insist(this.link.now() + this.options.callTimeoutMs, end, () => true);
  }

  /** Tells the consumers of a queue that calls of a method wait in {@link queueOfTask}. */
  async announce(queue: string, task: string): Promise<void> {
    const say = () => this.#append(this.#noticesOf(queue), announcementOf(task));
    await this.#insist(this.link.now() + this.options.callTimeoutMs, say, () => true);
  }

  #noticesOf(queue: string): string {
    return noticesKey(this.options.prefix, queue);
  }

  async lengths(queues: readonly string[]): Promise<QueueLengths> {
    const counts = queues.map(async (name) => {
      const queue = this.queue(name);
      return [name, await queue.getJobCounts(...STATES)] as const;
    });
    return Object.fromEntries(await Promise.all(counts));
  }

  /**
   * Tries until Redis confirms or the deadline passes. `attempt` may be done twice, since Redis may
   * go away before it confirms.
   *
   * @param deadline by {@link RedisLink.now}.
   * @param goesOn whether to try again after this error.
   * @returns whether Redis confirmed in time.
   */
  async #insist(
    deadline: number,
    attempt: () => Promise<unknown> | undefined,
    goesOn: (error: Error) => boolean,
  ): Promise<boolean> {
    const leftMs = Math.min(MAX_TIMER_MS, Math.max(0, deadline - this.link.now()));
    let timer: NodeJS.Timeout | undefined;
    // A Redis that hangs does not answer an attempt at all.
    const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, leftMs, false)));
    const tried = this.#try(this.link.now() + leftMs, attempt, goesOn);
    return Promise.race([tried, late]).finally(() => clearTimeout(timer));
  }

  async #try(
    deadline: number,
    attempt: () => Promise<unknown> | undefined,
    goesOn: (error: Error) => boolean,
  ): Promise<boolean> {
    while (this.link.now() < deadline && (await this.link.whenUp(deadline))) {
      try {
        await attempt();
        return true;
      } catch (error) {
        if (!goesOn(error as Error)) return false;
        await delay(RETRY_MS);
      }
    }
    return false;
  }

  /** Adds to a stream, and renews its expiry now and then. */
  async #append(key: string, text: string): Promise<void> {
    const { commands } = this.link;
    const added = commands.xadd(key, 'MAXLEN', '~', MAX_ENTRIES, '*', 'm', text);
    const now = Date.now();
    const isLasting = now < (this.#lasting.get(key) ?? 0);
    // Forgets the keys of processes that are gone.
    if (this.#lasting.size >= MAX_KEYS) this.#lasting.clear();
    if (!isLasting) this.#lasting.set(key, now + (KEY_SECONDS * 1_000) / 4);
    await Promise.all([added, !isLasting && commands.expire(key, KEY_SECONDS)]);
  }
}

/** Ids, places and times, which would make each line a new one. */
const NUMBERS = /[\da-f]{8,}|\d+/gi;

/** The same for lines that differ only in numbers. */
export function kindOfRefusal(line: string): string {
  return line.replaceAll(NUMBERS, '#');
}

export function unavailable(what: string, did?: string): TaskRejectedException {
  return new TaskRejectedException(what, 'queue-unavailable', 1, did);
}
