import { randomUUID } from 'node:crypto';
import { Inject, Injectable, type Type } from '@nestjs/common';
import type { JobsOptions } from 'bullmq';
import { TaskRejectedException } from 'nestjs-cluster';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import { decode, encode, type Outcome } from './payload.js';
import { QueueRunner } from './queue-runner.js';

/** A job and its state. */
export interface QueuedJob {
  readonly id: string;
  /** `Class.method`, or the name given to `@CpuBound()`. */
  readonly task: string;
  /** The job's state in BullMQ, such as `waiting`, `active`, `completed` or `failed`. */
  readonly state: string;
  /** How many times the job has been started, including attempts ended by a kill or a drain. */
  readonly attempts: number;
  /** The result of a completed job. */
  readonly result?: unknown;
  /** The error message of a failed job. */
  readonly error?: string;
}

/** Three attempts, with delays of 1 s and 2 s. Redis keeps the job for an hour after it ends. */
const DEFAULTS: JobsOptions = {
  attempts: 3,
  backoff: { type: 'exponential', delay: 1_000 },
  removeOnComplete: { age: 3_600 },
  removeOnFail: { age: 3_600 },
};

type Methods<T> = {
  [K in keyof T]: T[K] extends (...args: never[]) => unknown ? K : never;
}[keyof T];

type Arguments<T, K extends keyof T> = T[K] extends (...args: infer A) => unknown ? A : never;

/** Runs `@CpuBound({ queue })` methods without waiting for their results. */
@Injectable()
export class ClusterQueues {
  constructor(@Inject(QueueRunner) private readonly runner: QueueRunner) {}

  /**
   * Runs a method later, at least once, on any machine that consumes the method's queue.
   *
   * @param options BullMQ job options. By default the id is new, the job runs up to three times if
   *   its method throws, and Redis keeps the job for an hour after it ends.
   * @returns the id of the job, for {@link job}.
   * @throws TaskRejectedException (503) if Redis is unavailable or BullMQ rejects the options.
   * @throws ClusterUncloneableError for arguments that cannot be cloned.
   * @throws ClusterConfigurationError for a method without a queue.
   */
  async enqueue<T, K extends Methods<T> & string>(
    type: Type<T>,
    method: K,
    args: Arguments<T, K>,
    options?: JobsOptions,
  ): Promise<string> {
    const { situation } = this.runner;
    const { queue, name } = situation?.find(type, method) ?? {};
    if (situation === undefined || queue === undefined || name === undefined) {
      throw new ClusterConfigurationError(
        `${type.name}.${method}() cannot be enqueued: the method has no @CpuBound({ queue }), the app does not import ClusterModule.forRoot(), the app has not started, or this code runs in a thread`,
      );
    }
    const trace = situation.currentTrace();
    const given = encode({ args: args as readonly unknown[], trace }, name);
    const jobId = options?.jobId ?? randomUUID();
    await this.runner.add(queue, name, { given, call: false }, { ...DEFAULTS, ...options, jobId });
    return `${queue}/${jobId}`;
  }

  /**
   * Looks up a job by its id. Anyone who knows the id can read the job, so check first whether the
   * user may read it.
   *
   * @param id the result of {@link enqueue}.
   * @returns `undefined` if Redis does not know the job, or if no method of this app has its queue.
   * @throws TaskRejectedException (503) while Redis is unavailable.
   */
  async job(id: string): Promise<QueuedJob | undefined> {
    const [name = '', own = ''] = id.split('/');
    const queue = this.runner.queues.get(name);
    if (queue === undefined) return undefined;
    try {
      // Reads the state first, so that a `completed` job has its result. An id without a state may
      // be another BullMQ key.
      const state = await queue.getJobState(own);
      const job = state === 'unknown' ? undefined : await queue.getJob(own);
      if (job === undefined) return undefined;
      const { name: task, attemptsStarted: attempts, failedReason: error } = job;
      const outcome = state === 'completed' ? (decode(job.returnvalue as string) as Outcome) : {};
      const result = 'value' in outcome && { result: outcome.value };
      return { id, task, state, attempts, ...result, ...(state === 'failed' && { error }) };
    } catch {
      throw new TaskRejectedException(id, 'queue-unavailable', 'could not be looked up');
    }
  }
}
