import { once } from 'node:events';
import type { Logger } from '@nestjs/common';
import { Redis, type RedisOptions } from 'ioredis';
import type { ResolvedQueueOptions } from './options.js';

/** Maximum time for a command if Redis hangs, in ms. While Redis is unavailable, commands fail immediately. */
const COMMAND_TIMEOUT_MS = 5_000;

/** Maximum wait for a process's first connection to Redis, in ms. */
const FIRST_CONNECTION_MS = 1_000;

const MAX_RETRY_MS = 1_000;

/** The connections to Redis. Logs when Redis becomes unavailable and when it is available again. */
export class RedisLink {
  readonly commands: Redis;
  readonly #connections: Redis[] = [];
  #away = false;

  constructor(
    private readonly connection: ResolvedQueueOptions['connection'],
    logger: Pick<Logger, 'warn'>,
  ) {
    this.commands = this.open({
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: COMMAND_TIMEOUT_MS,
    });
    this.commands.on('ready', () => {
      if (this.#away) logger.warn('reconnected to the Redis server for queues');
      this.#away = false;
    });
    this.commands.on('error', ({ message }) => {
      if (!this.#away) logger.warn(`cannot connect to the Redis server for queues: ${message}`);
      this.#away = true;
    });
  }

  get up(): boolean {
    return this.commands.status === 'ready';
  }

  /** Waits for the first connection, or until it has failed once. */
  async opened(): Promise<void> {
    const signal = AbortSignal.timeout(FIRST_CONNECTION_MS);
    await once(this.commands, 'ready', { signal }).catch(() => {});
  }

  /** @param more by default, commands wait for Redis, as BullMQ requires for blocking connections. */
  open(more: RedisOptions = { maxRetriesPerRequest: null }): Redis {
    const { url, ...connection } = this.connection;
    const retryStrategy = (times: number): number => Math.min(times * 100, MAX_RETRY_MS);
    const all: RedisOptions = { ...connection, retryStrategy, ...more };
    const redis = url === undefined ? new Redis(all) : new Redis(url, all);
    redis.on('error', () => {}); // the connection `commands` reports it
    this.#connections.push(redis);
    return redis;
  }

  /** Closes the connections, because BullMQ does not close connections that were passed to it. */
  close(): void {
    for (const each of this.#connections) each.disconnect();
  }
}
