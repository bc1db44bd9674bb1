import { DelayedError, type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import { setTimeout as delay } from 'node:timers/promises';
import {
  arrive,
  type CallTrace,
  describeError,
  type Submitter,
  type Task,
  TaskAbortedException,
  TaskRejectedException,
  TaskTimeoutException,
  ThreadLostException,
} from '../../offload/index.js';
import { MAX_TIMER_MS } from '../../options/validate.js';
import { pack, packError, unpack } from './encoding.js';
import { giveBackForMs, MAX_STARTS } from './give-back.policy.js';
import { type JobPayload, readPayload, type Reply, VERSION } from './messages.js';
import type { QueueObserver } from './queue-observer.js';
import type { RunnerOptions } from './queue-telemetry.js';
import { type RedisLink, TIMED_OUT } from './redis-link.js';

/** A process that ends gives back what it has begun, if Redis takes it. */
const GIVE_BACK_MS = 500;

interface RunningJob {
  readonly job: Job;
  readonly token: string;
  trace: CallTrace | undefined;
  /** Its process is ending. */
  givenBack: boolean;
  /** Its caller does not wait any more. */
  abort: () => void;
}

/** A connection may look well and be dead. BullMQ itself waits for up to 10 s for a job. */
const COMMAND_TIMEOUT_MS = 15_000;

/** What a consumer works with. */
export interface ConsumerSituation {
  readonly link: RedisLink;
  readonly local: Submitter;
  readonly observer: QueueObserver;
  readonly options: RunnerOptions;
  readonly concurrency: number;
  /** Sends a reply to the process that waits for it. */
  readonly reply: (call: NonNullable<JobPayload['call']>, reply: Reply) => Promise<void>;
  readonly report: (line: string) => void;
}

/** Runs the jobs of one queue in the threads of this process. */
export class Consumer {
  readonly #worker: Worker;
  readonly #running = new Set<RunningJob>();
  /** Calls that were answered, whatever becomes of their jobs. */
  readonly #answered = new WeakSet<Job>();

  constructor(
    readonly queue: string,
    /** By name. */
    private readonly tasks: ReadonlyMap<string, Task>,
    private readonly situation: ConsumerSituation,
  ) {
    const { options, link, concurrency, observer } = situation;
    const { prefix, lockMs, stalledIntervalMs, maxStalledCount, telemetry } = options;
    const patient = { maxRetriesPerRequest: null, commandTimeout: COMMAND_TIMEOUT_MS };
    const connection = link.open(patient);
    this.#worker = new Worker(queue, (job: Job, token = '') => this.#process(job, token), {
      connection,
      prefix,
      concurrency,
      lockDuration: lockMs,
      // One look marks a job, the next takes it back if its lock is gone. BullMQ keeps looks apart
      // for this long, and its own timer is often early by a millisecond: then one falls out.
      stalledInterval: Math.floor(Math.min(stalledIntervalMs, lockMs) / 2),
      maxStalledCount,
      runRetryDelay: 500,
      skipVersionCheck: true,
      ...(telemetry && { telemetry }),
    });
    this.#worker.on('error', (error) => {
      if (error.message === TIMED_OUT && connection.status === 'ready') connection.disconnect(true);
      // Whether Redis is there is told of elsewhere.
      if (link.up && !/clos|ECONN|timed out/i.test(error.message)) {
        situation.report(`queue ${queue}: ${error.message}`);
      }
    });
    this.#worker.on('stalled', () => observer.stalled(queue));
    this.#worker.on('failed', (job, error) => this.#onFailed(job, error));
  }

  get running(): number {
    return this.#running.size;
  }

  /** A call that nobody waits for. */
  cancel(call: string): void {
    for (const { job, abort } of this.#running) if (job.id === call) abort();
  }

  /** Takes no more jobs. Resolves when those in hand are done. */
  async pause(): Promise<void> {
    await this.#worker.pause();
  }

  /** Ends within a bounded time: jobs in hand go back to the queue, by their locks at the latest. */
  async close(): Promise<void> {
    // One that is not taken back, or too late, is another's by its lock, and keeps nobody.
    const returns = Promise.allSettled(
      [...this.#running].map((running) => {
        running.givenBack = true;
        return running.job.moveToWait(running.token);
      }),
    );
    const bounded = (all: Promise<unknown>) =>
      Promise.race([all.catch(() => {}), delay(GIVE_BACK_MS, undefined, { ref: false })]);
    if (this.situation.link.up) await bounded(returns);
    // Not its orderly way, which waits for Redis, however long.
    await bounded(this.#worker.close(true));
  }

  async #process(job: Job, token: string): Promise<unknown> {
    const { observer } = this.situation;
    const begunAt = Date.now();
    observer.began(this.queue, Math.max(0, begunAt - job.timestamp - (job.opts.delay ?? 0)));
    const payload = this.#read(job);
    if (payload === undefined) {
      throw new UnrecoverableError(`this is no job of nestjs-cluster (version ${VERSION})`);
    }
    if (payload === 'newer') {
      return this.#giveBack(job, token, 'it is of a newer version of nestjs-cluster');
    }
    // It was given up before it began.
    if (payload.call && payload.call.deadline <= begunAt) return undefined;
    const isCall = payload.call !== undefined;
    const task = this.tasks.get(payload.task);
    if (task === undefined) {
      const why = 'no consumer has a method with its name in this queue';
      return this.#giveBack(job, token, why, isCall);
    }
    const running: RunningJob = {
      job,
      token,
      trace: undefined,
      givenBack: false,
      abort: () => {},
    };
    this.#running.add(running);
    try {
      return await this.#run(running, task, payload);
    } catch (error) {
      if (running.givenBack) throw new WaitingError();
      if (error instanceof TaskRejectedException) {
        // It was not begun: another process, or this one, has a thread for it soon.
        return await this.#giveBack(job, token, error.message, isCall);
      }
      running.trace?.failed(error);
      // Nobody waits for it: its caller left, or its time is up.
      if (payload.call && error instanceof TaskAbortedException) return undefined;
      if (payload.call) {
        await this.#answer(job, payload.call, errorReply(payload.call.id, error, running.trace));
      }
      throw error instanceof Error ? error : new Error(String(error));
    } finally {
      this.#running.delete(running);
      observer.ran(task.name, Date.now() - begunAt);
    }
  }

  /** With the deadline by the clock of this machine. */
  #read(job: Job): ReturnType<typeof readPayload> {
    const payload = readPayload(job.data);
    if (typeof payload !== 'object' || payload.call === undefined) return payload;
    const deadline = payload.call.deadline - this.situation.link.aheadMs;
    return { ...payload, call: { ...payload.call, deadline } };
  }

  async #run(running: RunningJob, task: Task, { args, contexts, call }: JobPayload) {
    const { local, options } = this.situation;
    // Concurrency bounds how many are in hand: the queue is where they wait, not for a thread.
    const patient: Task = { ...task, queueTimeoutMs: MAX_TIMER_MS, coalesce: false };
    const { job } = running;
    // An attempt after the first waited for something else.
    const madeAt = job.attemptsStarted > 1 ? Date.now() : job.timestamp + (job.opts.delay ?? 0);
    const arrived = arrive(task, unpack(contexts), madeAt);
    running.trace = arrived.trace;
    let deadline: NodeJS.Timeout | undefined;
    try {
      const result = await local.submit(
        patient,
        unpack(args) as unknown[],
        arrived.contexts,
        (gone) => {
          running.abort = gone;
          if (call) deadline = setTimeout(gone, Math.min(call.deadline - Date.now(), MAX_TIMER_MS));
          return () => (running.abort = () => {});
        },
        arrived.trace,
      );
      const value = pack(result, `the result of ${task.name}`);
      const bytes = Buffer.byteLength(JSON.stringify(value));
      if (bytes > options.maxPayloadBytes) {
        throw new UnrecoverableError(
          `the result of ${task.name} has ${bytes} bytes as JSON, and maxPayloadBytes is ${options.maxPayloadBytes}; store it elsewhere and return where, or raise maxPayloadBytes`,
        );
      }
      arrived.trace?.completed();
      if (call === undefined) return value;
      const traced = arrived.trace && { traced: true };
      await this.#answer(job, call, { v: VERSION, id: call.id, ok: true, value, ...traced });
      return undefined;
    } finally {
      clearTimeout(deadline);
    }
  }

  async #answer(job: Job, call: NonNullable<JobPayload['call']>, reply: Reply): Promise<void> {
    this.#answered.add(job);
    await this.situation.reply(call, reply);
  }

  /** Of a call whose job BullMQ itself has failed: the consumers before this one were all lost. */
  #onFailed(job: Job | undefined, error: Error): void {
    if (job === undefined || this.#answered.has(job)) return;
    const payload = this.#read(job);
    if (typeof payload !== 'object' || payload.call === undefined) return;
    const isLost = /stalled/.test(error.message);
    const told = isLost ? new ThreadLostException(payload.task, error) : error;
    void this.#answer(job, payload.call, errorReply(payload.call.id, told));
  }

  async #giveBack(job: Job, token: string, why: string, isCall = false): Promise<never> {
    const delayMs = giveBackForMs(job.attemptsStarted, isCall);
    if (delayMs === undefined) {
      throw new UnrecoverableError(`job ${job.id} was given back ${MAX_STARTS} times: ${why}`);
    }
    await job.moveToDelayed(Date.now() + delayMs, token);
    throw new DelayedError();
  }
}

function errorReply(id: string, error: unknown, trace?: CallTrace): Reply {
  const timeout = error instanceof TaskTimeoutException && { timeoutMs: error.timeoutMs };
  const described = packError(describeError(error));
  const traced = trace && { traced: true };
  return { v: VERSION, id, ok: false, error: described, ...timeout, ...traced };
}
