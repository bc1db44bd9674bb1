import { Inject, Injectable, type Type } from '@nestjs/common';
import type { Queue } from 'bullmq';
import { randomUUID } from 'node:crypto';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import { captureContexts, definitionsOf } from '../../offload/index.js';
import { unpack } from './redis/encoding.js';
import { checkEnqueueOptions, type EnqueueOptions, locate } from './enqueue-options.js';
import { payloadOf } from './redis/messages.js';
import { unavailable } from './redis/queue-client.js';
import { QUEUE_OPTIONS, type ResolvedQueueOptions } from './queue-options.js';
import { PATIENCE_MS, QueueRunner } from './queue-runner.js';

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

const NOT_LOOKED_UP = 'was not looked up';

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
   * @throws ClusterConfigurationError for wrong options or a method without a queue of this app.
   */
  async enqueue<T, K extends Methods<T> & string>(
    type: Type<T>,
    method: K,
    args: Arguments<T, K>,
    options?: EnqueueOptions,
  ): Promise<string> {
    const { id = randomUUID(), delay, attempts } = checkEnqueueOptions(options);
    const { task, queue } = this.#find(type, method);
    const payload = payloadOf(task, args as unknown[], captureContexts());
    const client = await this.runner.client(task);
    if (!client.has(queue)) {
      throw new ClusterConfigurationError(
        `${task} cannot be enqueued: no method of this app has queue: "${queue}"; add its class to the providers of a module`,
      );
    }
    const keep = { age: this.options.keepMs / 1_000 };
    const given = { jobId: id, delay, attempts, backoff: BACKOFF };
    const kept = { ...given, removeOnComplete: keep, removeOnFail: keep };
    await client.add(queue, payload, kept, PATIENCE_MS);
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
    const place = locate(id);
    const client = await this.runner.client(id, NOT_LOOKED_UP);
    if (place === undefined || !client.has(place.queue)) return undefined;
    const { state, job } = await this.#look(id, client.queue(place.queue), place.jobId);
    return (
      job && {
        id,
        task: job.name,
        state,
        attempts: job.attemptsStarted,
        ...(state === 'completed' && { result: unpack(job.returnvalue) }),
        ...(state === 'failed' && { error: job.failedReason }),
      }
    );
  }

  async #look(id: string, queue: Queue, jobId: string) {
    try {
      // Reads the state before the job, so that a job with the state `completed` always has its result.
      const state = (await queue.getJobState(jobId)) as QueuedJob['state'];
      return { state, job: await queue.getJob(jobId) };
    } catch (error) {
      if ((error as Error).name === 'ReplyError') throw error;
      throw unavailable(id, NOT_LOOKED_UP);
    }
  }

  #find(type: Type, method: string): { task: string; queue: string } {
    const definition = definitionsOf(type.prototype as object).find(
      (each) => each.method === method,
    );
    const { queue, name = `${type.name}.${method}` } = definition?.options ?? {};
    if (queue !== undefined) return { task: name, queue };
    throw new ClusterConfigurationError(
      `${type.name}.${method}() cannot be enqueued: it has no queue; decorate it with @CpuBound({ queue: '…' })`,
    );
  }
}
