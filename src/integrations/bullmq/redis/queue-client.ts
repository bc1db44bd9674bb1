import { type JobsOptions, Queue } from 'bullmq';
import { setTimeout as delay } from 'node:timers/promises';
import { UncloneableValueError } from '../../../contract/errors/index.js';
import { describeError, TaskRejectedException } from '../../../offload/index.js';
import { MAX_TIMER_MS } from '../../../contract/options/check/validate.js';
import { packError } from './encoding.js';
import { announcementOf, type JobPayload, noticesKey, repliesKey, type Reply } from './messages.js';
import type { ResolvedQueueOptions } from '../queue-options.js';
import type { RedisLink } from './redis-link.js';

const RETRY_MS = 50;
/** Refusals of a Redis that is full, cannot write or changes its role: for a while. */
const PASSES = /^(OOM|MISCONF|LOADING|BUSY|READONLY|MASTERDOWN|NOREPLICAS|CLUSTERDOWN|TRYAGAIN)\b/;
/** Streams of a process or a queue that is gone remain for so long. */
const KEY_SECONDS = 600;
const MAX_KEYS = 10_000;
const MAX_ENTRIES = 10_000;
const STATES = ['waiting', 'active', 'delayed', 'failed'] as const;

/** Jobs by state, by queue. */
export type QueueLengths = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** Writes to Redis: jobs, replies, and word of calls that nobody waits for. */
export class QueueClient {
  readonly #queues = new Map<string, Queue>();
  /** The time until which the expiry of a key need not be renewed; ms since the epoch. */
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

  /** @param name one of the app, never a string from outside: each takes memory for good. */
  queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      const { prefix, telemetry } = this.options;
      queue = new Queue(name, {
        connection: this.link.commands,
        prefix,
        skipVersionCheck: true,
        skipWaitingForReady: true,
        // Otherwise a look-up writes a key.
        skipMetasUpdate: true,
        ...(telemetry && { telemetry }),
      });
      queue.on('error', () => {}); // the link tells of it
      this.#queues.set(name, queue);
    }
    return queue;
  }

  /**
   * Adds a job.
   *
   * @param withinMs how long Redis has to confirm it. It may have been added nevertheless.
   * @param wanted whether there is still somebody for it.
   * @throws TaskRejectedException where it cannot be added.
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
          throw new UncloneableValueError(
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

  /** A reply that cannot be written before its call is given up is not written. */
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
        // The next reply renews the expiry of the key, with any outcome of this one.
        this.#lasting.delete(key);
        if (name !== 'ReplyError') return true;
        // Nobody else is told.
        this.warn(`Redis of the queues does not take a reply: ${message}`);
        return PASSES.test(message);
      },
    );
  }

  /**
   * Removes the job of a call that waits; has one that runs ended. Redis may be away, and take it
   * when it is back: so this is tried for as long as the call could have waited.
   *
   * @param at where the job is: its queue, or the queue of its method alone.
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
   * Does what may be done twice: Redis may go away before it has confirmed it.
   *
   * @param goesOn whether to try again after this error.
   * @returns whether it was confirmed by then ({@link RedisLink.now}).
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

  /** Adds to a stream, and has it last for a while from now; once in a part of that. */
  async #append(key: string, text: string): Promise<void> {
    const { commands } = this.link;
    const added = commands.xadd(key, 'MAXLEN', '~', MAX_ENTRIES, '*', 'm', text);
    const now = Date.now();
    const isLasting = now < (this.#lasting.get(key) ?? 0);
    // Keys of processes that are gone are not kept.
    if (this.#lasting.size >= MAX_KEYS) this.#lasting.clear();
    if (!isLasting) this.#lasting.set(key, now + (KEY_SECONDS * 1_000) / 4);
    await Promise.all([added, !isLasting && commands.expire(key, KEY_SECONDS)]);
  }
}

/** Ids of jobs and scripts, places, times: by them each line would be new. */
const NUMBERS = /[\da-f]{8,}|\d+/gi;

/** Equal for lines that say the same. */
export function kindOfRefusal(line: string): string {
  return line.replaceAll(NUMBERS, '#');
}

/** @param did what did not happen. */
export function unavailable(what: string, did?: string): TaskRejectedException {
  return new TaskRejectedException(what, 'queue-unavailable', 1, did);
}
