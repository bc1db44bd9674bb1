import { DelayedError, type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type CarriedContexts,
  describeError,
  type Submitter,
  type Task,
  TaskAbortedException,
  TaskRejectedException,
  TaskTimeoutException,
  ThreadLostException,
} from '../../offload/index.js';
import { MAX_TIMER_MS } from '../../contract/options/check/validate.js';
import { pack, packError, unpack } from './redis/encoding.js';
import { giveBackForMs, MAX_STARTS } from './give-back.policy.js';
import { type JobPayload, readPayload, type Reply, VERSION } from './redis/messages.js';
import type { QueueClient } from './redis/queue-client.js';
import type { QueueMetrics } from './queue-metrics.js';
import type { ResolvedQueueOptions } from './queue-options.js';

/** The maximum time that an ending process waits for giving its jobs back to the queue. */
const GIVE_BACK_MS = 500;

const LOOK_MS = 50;

/** Matches the messages of connection errors, which {@link RedisLink} reports already. */
const CONNECTION_ERROR = /clos|ECONN|timed out|did not answer/i;

export interface ConsumerSituation {
  readonly client: QueueClient;
  readonly local: Submitter;
  readonly metrics: QueueMetrics | undefined;
  readonly options: ResolvedQueueOptions;
  readonly concurrency: number;
  readonly warn: (line: string) => void;
}

/** Runs the jobs of one queue in the threads of this process. */
export class Consumer extends Worker {
  readonly #inHand = new Set<Job>();
  #closed = false;

  constructor(
    queue: string,
    /** The methods of the queue, by name. */
    private readonly tasks: ReadonlyMap<string, Task>,
    private readonly situation: ConsumerSituation,
    /** The queue's name in logs and metrics. In Redis, the queue of a single method has another name. */
    readonly label = queue,
  ) {
    const { options, client, concurrency, metrics, warn } = situation;
    const { prefix, lockMs, stalledIntervalMs, maxStalledCount } = options;
    // The function has three parameters, because BullMQ passes the signal only to such a function.
    super(queue, (job: Job, _token, signal) => this.#process(job, signal!), {
      connection: client.link.open(),
      prefix,
      concurrency,
      lockDuration: lockMs,
      // BullMQ marks a job at one check, and takes the job back at the next check if its lock has
      // expired. The interval is halved because BullMQ skips a check if its timer is 1 ms early.
      stalledInterval: Math.floor(Math.min(stalledIntervalMs, lockMs) / 2),
      maxStalledCount,
      runRetryDelay: 500,
      skipVersionCheck: true,
    });
    this.on('error', ({ message }) => {
      if (client.link.up && !CONNECTION_ERROR.test(message)) warn(`queue ${label}: ${message}`);
    });
    this.on('stalled', () => metrics?.stalled.inc({ queue: label }));
    this.on('failed', (job, error) => this.#onFailed(job, error));
  }

  /** The number of jobs that run. */
  get jobs(): number {
    return this.#inHand.size;
  }

  /**
   * Takes no more jobs. Resolves when the running jobs are done. If Redis is away at that time, does
   * not wait until Redis has confirmed the jobs, so other consumers run these jobs again.
   */
  override async pause(): Promise<void> {
    let done = false;
    const paused = super.pause().catch(() => {});
    void paused.then(() => (done = true));
    while (!done && (this.situation.client.link.up || this.jobs > 0)) {
      await Promise.race([paused, delay(LOOK_MS)]);
    }
  }

  /** Ends within 1 s. Running jobs go back to the queue at once, or when their locks expire. */
  override async close(): Promise<void> {
    const bounded = (all: Promise<unknown>) =>
      Promise.race([all.catch(() => {}), delay(GIVE_BACK_MS, undefined, { ref: false })]);
    this.#closed = true;
    const returns = Promise.allSettled([...this.#inHand].map((job) => job.moveToWait(job.token)));
    if (this.situation.client.link.up) await bounded(returns);
    // Closes with `true` (force), because close() otherwise waits for Redis without a limit.
    await bounded(super.close(true));
  }

  async #process(job: Job, signal: AbortSignal): Promise<unknown> {
    const { metrics, client } = this.situation;
    const queue = this.label;
    const begunAt = Date.now();
    metrics?.attempts.inc({ queue });
    metrics?.wait.observe({ queue }, Math.max(0, begunAt - madeAt(job)) / 1_000);
    const payload = readPayload(job.data);
    if (payload === undefined) {
      throw new UnrecoverableError(`this is not a job of nestjs-cluster (version ${VERSION})`);
    }
    if (payload === 'newer') return giveBack(job, 'it is of a newer version of nestjs-cluster');
    const { call } = payload;
    // The caller has stopped waiting, so the job is not run.
    if (call && call.deadline <= client.link.now()) return undefined;
    const task = this.tasks.get(payload.task);
    if (task === undefined) {
      if (call === undefined) {
        return giveBack(job, 'no consumer has a method with its name in this queue');
      }
      // Not given back: the queue would often give the job to this consumer again, because a consumer
      // that runs nothing asks for jobs more often. The caller sends the call to another queue.
      return client.reply(call, { v: VERSION, id: call.id, ok: false, error: null, unknown: true });
    }
    this.#inHand.add(job);
    try {
      return await this.#run(job, task, payload, signal);
    } finally {
      this.#inHand.delete(job);
      metrics?.run.observe({ task: task.name }, (Date.now() - begunAt) / 1_000);
    }
  }

  async #run(job: Job, task: Task, { args, contexts, call }: JobPayload, signal: AbortSignal) {
    const { local, client } = this.situation;
    // No timeout for the wait for a thread: `concurrency` limits the jobs, so no job waits long.
    const patient: Task = { ...task, queueTimeoutMs: MAX_TIMER_MS };
    try {
      const watch = (gone: () => void) => {
        signal.addEventListener('abort', gone);
        const leftMs = call && Math.min(call.deadline - client.link.now(), MAX_TIMER_MS);
        const deadline = call && setTimeout(gone, leftMs);
        return () => clearTimeout(deadline);
      };
      const given = unpack(args) as unknown[];
      const carried = unpack(contexts) as CarriedContexts | undefined;
      const result = await local.submit(patient, given, carried, watch);
      const value = this.#packed(result, task);
      if (call === undefined) return value;
      return await client.reply(call, { v: VERSION, id: call.id, ok: true, value });
    } catch (error) {
      if (this.#closed) throw new WaitingError();
      // The job did not begin. This process or another process will soon have a free thread for the job.
      if (error instanceof TaskRejectedException) return giveBack(job, error.message, call);
      // The caller has stopped waiting for the result.
      if (call && error instanceof TaskAbortedException) return undefined;
      if (call) await client.reply(call, errorReply(call.id, error));
      throw error instanceof Error ? error : new Error(String(error));
    }
  }

  #packed(result: unknown, { name }: Task): unknown {
    const { maxPayloadBytes } = this.situation.options;
    const value = pack(result, `the result of ${name}`);
    const bytes = Buffer.byteLength(JSON.stringify(value));
    if (bytes <= maxPayloadBytes) return value;
    throw new UnrecoverableError(
      `the result of ${name} has ${bytes} bytes as JSON, and maxPayloadBytes is ${maxPayloadBytes}; store it elsewhere and return where, or raise maxPayloadBytes`,
    );
  }

  /** Tells the caller if BullMQ has failed the job because the job has lost too many consumers. */
  #onFailed(job: Job | undefined, error: Error): void {
    const payload = job?.deferredFailure ? readPayload(job.data) : undefined;
    if (typeof payload !== 'object' || payload.call === undefined) return;
    const lost = new ThreadLostException(payload.task, error);
    void this.situation.client.reply(payload.call, errorReply(payload.call.id, lost));
  }
}

/** The earliest time at which the job could begin, in ms since the epoch. */
function madeAt({ timestamp, opts }: Job): number {
  return timestamp + (opts.delay ?? 0);
}

async function giveBack(job: Job, why: string, call?: JobPayload['call']): Promise<never> {
  const delayMs = giveBackForMs(job.attemptsStarted, call !== undefined);
  if (delayMs === undefined) {
    throw new UnrecoverableError(`job ${job.id} was given back ${MAX_STARTS} times: ${why}`);
  }
  await job.moveToDelayed(Date.now() + delayMs, job.token);
  throw new DelayedError();
}

function errorReply(id: string, error: unknown): Reply {
  const timeout = error instanceof TaskTimeoutException && { timeoutMs: error.timeoutMs };
  const described = packError(describeError(error));
  return { v: VERSION, id, ok: false, error: described, ...timeout };
}
