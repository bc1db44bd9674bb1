import { once } from 'node:events';
import type { Logger } from '@nestjs/common';
import { Redis, type RedisOptions } from 'ioredis';
import type { ResolvedQueueOptions } from './options.js';

/** A command of a caller fails at once while Redis is away, and after this time if Redis hangs, in ms. */
const COMMAND_TIMEOUT_MS = 5_000;

/** Maximum wait of a call for the first connection of a process to Redis, in ms. */
const FIRST_CONNECTION_MS = 1_000;

const MAX_RETRY_MS = 1_000;

/** The connections to Redis. Logs when Redis goes away and comes back. */
export class RedisLink {
  readonly commands: Redis;
  readonly #connections: Redis[] = [];
  /** Whether Redis could not be reached, or its connection has broken. */
  #away = false;

  constructor(
    private readonly options: ResolvedQueueOptions,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {
    this.commands = this.open({
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: COMMAND_TIMEOUT_MS,
    });
    this.commands.on('ready', () => {
      if (this.#away) this.logger.warn('Redis of the queues is back');
      this.#away = false;
    });
    this.commands.on('error', ({ message }) => this.#onAway(message));
    this.commands.on('close', () => this.#onAway('its connection was closed'));
  }

  get up(): boolean {
    return this.commands.status === 'ready';
  }

  /** @returns whether Redis answers. Waits up to 1 s for the first connection. */
  async isUp(): Promise<boolean> {
    if (!this.up && !this.#away) {
      const signal = AbortSignal.timeout(FIRST_CONNECTION_MS);
      await once(this.commands, 'ready', { signal }).catch(() => {});
    }
    return this.up;
  }

  /** @param more by default, commands wait for Redis, as BullMQ asks of a connection that blocks. */
  open(more: RedisOptions = { maxRetriesPerRequest: null }): Redis {
    const { url, ...connection } = this.options.connection;
    const retryStrategy = (times: number): number => Math.min(times * 100, MAX_RETRY_MS);
    const all: RedisOptions = { ...connection, retryStrategy, ...more };
    const redis = url === undefined ? new Redis(all) : new Redis(url, all);
    redis.on('error', () => {}); // the connection `commands` reports it
    this.#connections.push(redis);
    return redis;
  }

  close(): void {
    this.#away = true; // so that the close is not logged
    // BullMQ does not close the connections that it was given.
    for (const each of this.#connections) each.disconnect();
  }

  #onAway(why: string): void {
    if (this.#away) return;
    this.#away = true;
    const fate = this.options.onUnavailable === 'local' ? 'run in this process' : 'are refused';
    this.logger.warn(
      `Redis of the queues cannot be reached (${why}): calls ${fate} until it is back`,
    );
  }
}
