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
/** Errors after which Redis may accept a retry: Redis is full, cannot write or changes its role. */
const PASSES = /^(OOM|MISCONF|LOADING|BUSY|READONLY|MASTERDOWN|NOREPLICAS|CLUSTERDOWN|TRYAGAIN)\b/;
/** How long the stream of a process or queue remains in Redis after its last use. */
const KEY_SECONDS = 600;
const MAX_KEYS = 10_000;
const MAX_ENTRIES = 10_000;
const STATES = ['waiting', 'active', 'delayed', 'failed'] as const;

/** The number of jobs in each state, for each queue. */
export type QueueLengths = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Writes jobs, replies and notices to Redis. */
export class QueueClient {
  readonly #queues = new Map<string, Queue>();
  /** When the expiry of each key must be renewed, in ms since the epoch. */
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

  /** @param name a queue of the app. Never a string from outside, because the `Queue` is never freed. */
  queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      const { prefix } = this.options;
      queue = new Queue(name, {
        connection: this.link.commands,
        prefix,
        skipVersionCheck: true,
        skipWaitingForReady: true,
        // Without this option, a read would write a key.
        skipMetasUpdate: true,
      });
      queue.on('error', () => {}); // the link reports the error
      this.#queues.set(name, queue);
    }
    return queue;
  }

  /**
   * Adds a job.
   *
   * @param withinMs the time that Redis has to confirm the job, in ms.
   * @param wanted whether the job is still needed. Called before each attempt.
   * @throws TaskRejectedException if Redis did not confirm the job in time. The job may have been
   *   added anyway.
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

  /** Writes a reply. Tries until the deadline of the call. */
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
        // The expiry may not have been set, so the next reply sets it again.
        this.#lasting.delete(key);
        if (name !== 'ReplyError') return true;
        this.warn(`Redis of the queues does not take a reply: ${message}`);
        return PASSES.test(message);
      },
    );
  }

  /**
   * Removes the job of a call if the job waits, or aborts the job if it runs. Redis may be away, so
   * tries for `callTimeoutMs`, the longest time that a call waits.
   *
   * @param at the queue that the job is in: its own queue, or the queue of its method.
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
   * Repeats `attempt` until Redis confirms it or the deadline passes. Redis may carry out an attempt
   * twice, because the connection may break before the confirmation.
   *
   * @param deadline a time of {@link RedisLink.now}.
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
    // Limits the attempt itself too, because a Redis that hangs never answers.
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

  /** Adds an entry to a stream. Renews the stream's expiry if a quarter of that time has passed. */
  async #append(key: string, text: string): Promise<void> {
    const { commands } = this.link;
    const added = commands.xadd(key, 'MAXLEN', '~', MAX_ENTRIES, '*', 'm', text);
    const now = Date.now();
    const isLasting = now < (this.#lasting.get(key) ?? 0);
    // Forgets all keys, so that the map does not grow by the keys of processes that have ended.
    if (this.#lasting.size >= MAX_KEYS) this.#lasting.clear();
    if (!isLasting) this.#lasting.set(key, now + (KEY_SECONDS * 1_000) / 4);
    await Promise.all([added, !isLasting && commands.expire(key, KEY_SECONDS)]);
  }
}

/** Matches ids and numbers, which would make each log line different. */
const NUMBERS = /[\da-f]{8,}|\d+/gi;

/** A log line with its ids and numbers replaced, so that lines which differ only in these are the same. */
export function kindOfRefusal(line: string): string {
  return line.replaceAll(NUMBERS, '#');
}

export function unavailable(what: string, did?: string): TaskRejectedException {
  return new TaskRejectedException(what, 'queue-unavailable', 1, did);
}
