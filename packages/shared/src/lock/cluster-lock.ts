import { Injectable } from '@nestjs/common';
import * as v from 'valibot';
import { hubOf } from '../client/hub-of-process.js';
import { ClusterLockTimeoutError, ClusterSharedError } from '../errors.js';
import { durationMs, text, validate } from '../options.js';
import { HeldLocks, refuseThread } from './held-locks.js';

/** Options of `runExclusive()`. */
export interface RunExclusiveOptions {
  /** How long to wait for the lock, 0..2^31-1 ms. With 0, the call does not wait. Default: 10,000. */
  readonly waitMs?: number | undefined;
}

/** The lock held while `fn` runs. */
export interface AcquiredLock {
  /**
   * Aborted if the lock is lost while `fn` runs. If the connection to the hub is lost, the signal
   * is aborted within 1.8 s, unless a restarted hub returns the lock first.
   */
  readonly signal: AbortSignal;
  /**
   * A fencing token. While the primary runs, tokens increase with each grant. Send the token with
   * each write of `fn`, and let the resource reject any token lower than the highest it has seen.
   * Then a process that has lost its lock without noticing cannot write.
   */
  readonly token: number;
}

const nameSchema = text();
const optionsSchema = v.strictObject({ waitMs: v.optional(durationMs(), 10_000) });

/**
 * Locks that only one worker of the cluster holds at a time. Provide this class in each module that
 * injects it. Without a primary, a lock applies only to this process.
 */
@Injectable()
export class ClusterLock {
  /** Connected on first use, because an instance may be created where no app runs. */
  #held: HeldLocks | undefined;

  /**
   * Runs `fn` while no other call in the cluster holds the lock with this name. Calls get the lock
   * in order of arrival. The lock is free again when `fn` or its process ends. A call for the same
   * name inside `fn` waits for itself, until `waitMs` is over.
   *
   * @param name 1 to 1,024 characters.
   * @param fn gets the lock, whose signal is aborted if the lock is lost.
   * @throws ClusterLockTimeoutError if the lock is not free in time, ClusterSharedError if the hub
   *   cannot be used, ClusterConfigurationError for wrong options or in a thread, e.g. of a
   *   `@CpuBound()` method, and any error from `fn`.
   */
  async runExclusive<T>(
    name: string,
    fn: (lock: AcquiredLock) => Promise<T> | T,
    options?: RunExclusiveOptions,
  ): Promise<T> {
    validate(nameSchema, name, 'name of a lock');
    const { waitMs } = validate(optionsSchema, options ?? {}, 'options of runExclusive()');
    refuseThread('runExclusive', name);
    const held = (this.#held ??= new HeldLocks(hubOf()));
    const lock = await held.acquire({ name }, waitMs).catch(({ message }: Error) => {
      throw new ClusterSharedError(`the lock '${name}' cannot be requested: ${message}`);
    });
    if (lock === undefined) throw new ClusterLockTimeoutError(name, waitMs);
    try {
      return await fn({ signal: lock.signal, token: lock.token });
    } finally {
      held.release(lock);
    }
  }
}
