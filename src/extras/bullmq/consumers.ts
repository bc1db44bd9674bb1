import { setTimeout as delay } from 'node:timers/promises';
import type { Consumer } from './consumer.js';
import type { RedisLink } from './redis-link.js';

const LOOK_MS = 50;

/**
 * The consumers of this process, in the shape of one BullMQ `Worker`: by that
 * a drain finds it, has it take no more jobs, and waits for those in hand.
 */
export class Consumers {
  #all: readonly Consumer[] = [];
  #link: RedisLink | undefined;
  #paused = false;

  start(link: RedisLink, all: readonly Consumer[]): void {
    this.#link = link;
    this.#all = all;
  }

  get queues(): readonly string[] {
    return this.#all.map(({ queue }) => queue);
  }

  get running(): number {
    return this.#all.reduce((sum, { running }) => sum + running, 0);
  }

  cancel(queue: string, call: string): void {
    this.#all.find((each) => each.queue === queue)?.cancel(call);
  }

  /** Waits for Redis no longer than for the jobs: without it, their results have to be made again. */
  async pause(): Promise<void> {
    this.#paused = true;
    let done = this.#all.length === 0;
    const paused = Promise.allSettled(this.#all.map((each) => each.pause()));
    void paused.then(() => (done = true));
    while (!done && (this.#link?.up || this.running > 0)) {
      await Promise.race([paused, delay(LOOK_MS)]);
    }
  }

  isPaused(): boolean {
    return this.#paused;
  }

  isRunning(): boolean {
    return !this.#paused && this.#all.length > 0;
  }

  /** They run from their start. */
  run(): void {}

  /** A process that drains does not come back. */
  resume(): void {}

  async close(): Promise<void> {
    this.#paused = true;
    await Promise.all(this.#all.map((each) => each.close()));
  }
}
