import { randomUUID } from 'node:crypto';
import { Inject, Injectable, type Type } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { TaskRejectedException } from 'nestjs-cluster';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import {
  checkEnqueueOptions,
  type EnqueueOptions,
  QUEUE_OPTIONS,
  type ResolvedQueueOptions,
} from './options.js';
import { decode, encode, type Outcome, VERSION } from './payload.js';
import { QueueRunner } from './queue-runner.js';

/** A job, with its state. */
export interface QueuedJob {
  readonly id: string;
  /** `Class.method`, or the name given to `@CpuBound()`. */
  readonly task: string;
  readonly state: 'waiting' | 'delayed' | 'active' | 'completed' | 'failed' | 'unknown';
  /** How often a consumer has taken the job, including attempts that ended by a kill or a drain. */
  readonly attempts: number;
  /** The result of a completed job. */
  readonly result?: unknown;
  /** The error message of a failed job. */
  readonly error?: string;
}

/** The wait between two attempts: 1 s, doubled after each attempt. */
const BACKOFF = { type: 'exponential', delay: 1_000 };

/** In Redis, the id has a prefix: BullMQ numbers jobs itself, and has keys such as `<queue>:delayed`. */
const jobIdOf = (id: string): string => `id-${id}`;

type Methods<T> = {
  [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never;
}[keyof T];

type Arguments<T, K extends keyof T> = T[K] extends (...args: infer A) => unknown ? A : never;

/** Runs `@CpuBound({ queue })` methods without waiting for their results. */
@Injectable()
export class ClusterQueues {
  constructor(
    @Inject(QUEUE_OPTIONS) private readonly options: ResolvedQueueOptions,
    @Inject(QueueRunner) private readonly runner: QueueRunner,
  ) {}

  /**
   * Runs a method later, at least once, on any machine that consumes the method's queue.
   *
   * @returns the id of the job, for {@link job}.
   * @throws TaskRejectedException (503) while Redis is away.
   * @throws ClusterUncloneableError for arguments that cannot be sent.
   * @throws ClusterConfigurationError for wrong options or a method without a queue.
   */
  async enqueue<T, K extends Methods<T> & string>(
    type: Type<T>,
    method: K,
    args: Arguments<T, K>,
    options?: EnqueueOptions,
  ): Promise<string> {
    const { id = randomUUID(), ...given } = checkEnqueueOptions(options);
    const { find, captureContexts } = this.runner.situation;
    const { queue, name } = find(type, method) ?? {};
    if (queue === undefined || name === undefined) {
      throw new ClusterConfigurationError(
        `${type.name}.${method}() cannot be enqueued: it has no queue; decorate it with @CpuBound({ queue: '…' }), and provide its class in a module of this app`,
      );
    }
    const data = encode({ args: args as readonly unknown[], contexts: captureContexts() }, name);
    const keep = { age: this.options.keepMs / 1_000 };
    await this.runner.add(
      queue,
      name,
      { v: VERSION, given: data, call: false },
      {
        ...given,
        jobId: jobIdOf(id),
        backoff: BACKOFF,
        removeOnComplete: keep,
        removeOnFail: keep,
      },
    );
    return `${queue}/${id}`;
  }

  /**
   * Looks up a job by its id. Anyone who knows the id can read the job, so check first whether the
   * user may read it.
   *
   * @param id the result of {@link enqueue}.
   * @returns `undefined` if Redis does not know the job, or if no method of this app has its queue.
   * @throws TaskRejectedException (503) while Redis is away.
   */
  async job(id: string): Promise<QueuedJob | undefined> {
    const [, name = '', own = ''] = /^([^/]+)\/([\w.-]{1,200})$/.exec(id) ?? [];
    if (!this.runner.has(name)) return undefined;
    const queue = await this.runner.queue(name, id);
    const { state, job } = await this.#look(queue, own).catch(() => {
      throw new TaskRejectedException(id, 'queue-unavailable', 1, 'was not looked up');
    });
    if (job === undefined) return undefined;
    const { name: task, attemptsStarted: attempts, failedReason: error } = job;
    const outcome = state === 'completed' ? (decode(job.returnvalue as string) as Outcome) : {};
    return {
      id,
      task,
      state,
      attempts,
      ...('value' in outcome && { result: outcome.value }),
      ...(state === 'failed' && { error }),
    };
  }

  async #look(queue: Queue, id: string) {
    // The state first, so that a job with the state `completed` has its result.
    const state = (await queue.getJobState(jobIdOf(id))) as QueuedJob['state'];
    return { state, job: await queue.getJob(jobIdOf(id)) };
  }
}
