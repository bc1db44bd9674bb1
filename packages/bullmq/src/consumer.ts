import { DelayedError, type Job, WaitingError, Worker } from 'bullmq';
import { TaskRejectedException, ThreadLostException } from 'nestjs-cluster';
import type { RemoteSituation, Task } from 'nestjs-cluster/extension';
import type { ResolvedQueueOptions } from './options.js';
import { decode, encode, type Given, type JobData, type Outcome } from './payload.js';
import type { RedisLink } from './redis-link.js';

/** How long a job stays locked after its consumer is killed, in ms. The next check gives it to another consumer. */
const LOCK_MS = 10_000;
const STALLED_CHECK_MS = 5_000;

/** A job fails once it has lost more consumers than this, because it probably kills them. */
const MAX_LOST_CONSUMERS = 3;

/** Time a job waits for another consumer if this release cannot run it, in ms. */
const GIVE_BACK_MS = 1_000;

/** Maximum number of times a job is started. After that it fails. */
const MAX_STARTS = 100;

/** Maximum time for an exiting process to return its jobs to Redis, in ms. */
const CLOSE_MS = 500;

/** The longest timer delay. Jobs do not wait for a thread, because `concurrency` limits them. */
const NEVER_MS = 2 ** 31 - 1;

export interface ConsumerSituation extends Pick<
  RemoteSituation,
  'local' | 'describeError' | 'threads'
> {
  readonly link: RedisLink;
  readonly options: ResolvedQueueOptions;
  readonly warn: (line: string) => void;
}

/** Runs the jobs of one queue in the threads of this process. */
export class Consumer extends Worker<JobData, string> {
  readonly #jobs = new Set<Job<JobData, string>>();
  #isEnding = false;

  constructor(
    queue: string,
    /** The methods of the queue, by name. */
    private readonly tasks: ReadonlyMap<string, Task>,
    private readonly situation: ConsumerSituation,
  ) {
    const { options, link, threads, warn } = situation;
    super(queue, (job) => this.#process(job), {
      connection: link.open(),
      prefix: options.prefix,
      concurrency: options.concurrency ?? Math.max(1, threads),
      lockDuration: LOCK_MS,
      stalledInterval: STALLED_CHECK_MS,
      maxStalledCount: MAX_LOST_CONSUMERS,
      maxStartedAttempts: MAX_STARTS,
      skipVersionCheck: true,
    });
    this.on('error', ({ message }) => {
      if (link.up) warn(`queue ${queue}: ${message}`);
    });
  }

  get runningJobs(): number {
    return this.#jobs.size;
  }

  /** While Redis is unavailable, does nothing: BullMQ's pause() would wait for Redis. */
  override async pause(): Promise<void> {
    if (this.situation.link.up) await super.pause();
  }

  /** Returns running jobs to the queue at once or, if Redis is unavailable, when their locks expire. */
  override async close(): Promise<void> {
    this.#isEnding = true;
    const returned = Promise.allSettled(
      [...this.#jobs].map((job) => job.moveToWait(job.token)),
    ).then(() => super.close(true)); // without `true`, close() may wait for Redis forever
    const late = new Promise((resolve) => setTimeout(resolve, CLOSE_MS).unref());
    await Promise.race([returned.catch(() => {}), late]);
  }

  async #process(job: Job<JobData, string>): Promise<string> {
    const { local, describeError } = this.situation;
    const task = this.tasks.get(job.name);
    if (task === undefined) return giveBack(job);
    const { args, trace } = decode(job.data.given) as Given;
    this.#jobs.add(job);
    try {
      const patient: Task = { ...task, queueTimeoutMs: NEVER_MS };
      const value = await local.submit(patient, args, trace as never);
      return encode({ value } satisfies Outcome, task.name);
    } catch (error) {
      if (this.#isEnding) throw new WaitingError(); // close() has returned the job to the queue
      if (error instanceof TaskRejectedException) return await giveBack(job);
      if (!job.data.call || error instanceof ThreadLostException) throw error;
      return encode({ error: describeError(error) }, task.name);
    } finally {
      this.#jobs.delete(job);
    }
  }
}

/** Returns the job to the queue, to be run later by this or another consumer. @throws always */
async function giveBack(job: Job): Promise<never> {
  await job.moveToDelayed(Date.now() + GIVE_BACK_MS, job.token);
  throw new DelayedError();
}
