import { AsyncLocalStorage } from 'node:async_hooks';
import { isMainThread } from 'node:worker_threads';
import { Injectable } from '@nestjs/common';
import { currentLink } from '../../contract/snapshot/current-link.js';
import { ClusterConfigurationError } from '../../contract/errors/index.js';
import { HeldLocks, type HeldLock } from '../client/held-locks.js';
import type { HubClient } from '../client/hub-client.js';
import { HubError } from '../client/hub-error.js';
import { hubOf } from '../client/hub-of-process.js';
import { checkDuration } from '../../contract/options/check/validate.js';
import {
  ClusterLockReentryError,
  ClusterLockRefusedError,
  ClusterLockTimeoutError,
} from './lock.errors.js';

/** How `runExclusive()` takes its lock. */
export interface RunExclusiveOptions {
  /** How long to wait for the lock, 0..2^31-1 ms; 0 takes it only if it is free. Default: 10,000. */
  readonly waitMs?: number | undefined;
}

/** The lock that `fn` runs under. */
export interface AcquiredLock {
  /**
   * Aborted if the lock is lost while `fn` runs: at most 1.8 s after the connection to the hub was
   * lost, unless the next hub has given the lock back.
   */
  readonly signal: AbortSignal;
  /**
   * A fencing token. It grows with each lock that the cluster gives, through the life of the primary.
   * Send it along with what `fn` writes. The resource refuses a token below one that it has seen, so
   * a holder that has lost its lock and does not know it yet writes nothing.
   */
  readonly token: number;
}

const DEFAULT_WAIT_MS = 10_000;
const MAX_NAME_LENGTH = 1_024;

/** What the code that runs now holds, from the outermost on. */
interface Held {
  readonly lock: HeldLock;
  readonly outer: Held | undefined;
}

/** Of all instances: each module may have provided one of its own. */
const RUNNING = new AsyncLocalStorage<Held>();

/**
 * Locks that one worker of the cluster holds at a time. Provide it where it is injected. Without a
 * primary it locks within the process.
 */
@Injectable()
export class ClusterLock {
  #locks: { readonly hub: HubClient; readonly held: HeldLocks } | undefined;

  /**
   * Runs `fn` while nobody else in the cluster runs one under this name. Those who wait are served in
   * the order in which they came. The lock is free again when `fn` has ended, or its process.
   *
   * @param fn gets the lock: its signal is aborted if the lock is lost while it runs.
   * @throws ClusterLockTimeoutError where it is not free in time, ClusterLockReentryError inside
   * itself, ClusterConfigurationError in a thread such as that of a `@CpuBound()` method, and
   * whatever `fn` throws.
   */
  async runExclusive<T>(
    name: string,
    fn: (lock: AcquiredLock) => Promise<T> | T,
    { waitMs = DEFAULT_WAIT_MS }: RunExclusiveOptions = {},
  ): Promise<T> {
    check(name, waitMs);
    if (!isMainThread) throw inThread(name);
    const outer = RUNNING.getStore();
    for (let each = outer; each !== undefined; each = each.outer) {
      if (each.lock.held && each.lock.name === name) throw new ClusterLockReentryError(name);
    }
    const { held } = this.#open();
    const lock = held.add(name, await this.#acquire(name, waitMs));
    try {
      return await RUNNING.run({ lock, outer }, async () =>
        fn({ signal: lock.signal, token: lock.token }),
      );
    } finally {
      held.release(lock);
    }
  }

  async #acquire(name: string, waitMs: number): Promise<number> {
    try {
      const answer = await this.#open().hub.askPatiently(
        (leftMs) => ({ op: 'lock', name, waitMs: leftMs }),
        waitMs,
      );
      if (answer?.header.t === 'granted') return answer.header.grant;
    } catch (error) {
      if (error instanceof HubError) throw new ClusterLockRefusedError(name, error.message);
      throw error;
    }
    throw new ClusterLockTimeoutError(name, waitMs);
  }

  /** Not before it is used: the module may be loaded where no app runs. */
  #open(): { readonly hub: HubClient; readonly held: HeldLocks } {
    if (this.#locks === undefined) {
      const hub = hubOf(currentLink());
      this.#locks = { hub, held: new HeldLocks(hub) };
    }
    return this.#locks;
  }
}

/** Only the main thread has the connection of its process: here it would hold in this thread alone. */
function inThread(name: string): ClusterConfigurationError {
  return new ClusterConfigurationError(
    `runExclusive(${JSON.stringify(name)}) was called in a thread, where a lock would hold in that thread alone; take the lock where the thread is called, around the call of the @CpuBound() method`,
  );
}

/** @throws ClusterConfigurationError */
function check(name: string, waitMs: number): void {
  if (typeof name !== 'string' || name.length === 0 || name.length > MAX_NAME_LENGTH) {
    throw new ClusterConfigurationError(
      `runExclusive() was given the name ${JSON.stringify(name)?.slice(0, 40)}; a lock has a name of 1 to ${MAX_NAME_LENGTH} characters`,
    );
  }
  checkDuration('waitMs of runExclusive()', waitMs);
}
