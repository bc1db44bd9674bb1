import type { Logger } from '@nestjs/common';
import { Redis, type RedisOptions } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';
import { oneLine } from '../../../contract/errors/index.js';
import type { ResolvedQueueOptions } from '../queue-options.js';

/** Options of a connection whose commands fail at once while Redis is away. */
const IMPATIENT = { enableOfflineQueue: false, maxRetriesPerRequest: 0, commandTimeout: 5_000 };

/**
 * Options of a connection whose commands wait for Redis and are sent again. The timeout is above
 * 10 s, because BullMQ's commands that wait for a job take up to 10 s.
 */
const PATIENT = { maxRetriesPerRequest: null, commandTimeout: 15_000 };

const MAX_RETRY_MS = 1_000;

/** The maximum time that a call waits for the first connection of a process to Redis. */
const FIRST_CONNECTION_MS = 1_000;

/** The connections to Redis. Logs when Redis goes away and comes back. */
export class RedisLink {
  /** A connection whose commands fail at once while Redis is away. */
  readonly commands: Redis;
  readonly #connections: Redis[] = [];
  /** Whether Redis could not be reached, or its connection has broken. */
  #away = false;
  /** Ends the waits of {@link whenUp}. */
  #wake = new AbortController();
  /** How far the clock of Redis is ahead of this machine's clock, in ms. */
  #aheadMs = 0;

  constructor(
    private readonly options: Pick<ResolvedQueueOptions, 'connection' | 'onUnavailable'>,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {
    this.commands = this.open(IMPATIENT);
    this.commands.once('ready', () => void this.#checkEviction());
    this.commands.on('ready', () => this.#onReady());
    this.commands.on('error', (error) => this.#onAway(error.message));
    this.commands.on('close', () => this.#onAway('its connection was closed'));
  }

  get up(): boolean {
    return this.commands.status === 'ready';
  }

  /**
   * Ms since the epoch by the clock of Redis, or by this machine's clock until Redis has told its time.
   * Deadlines in messages use the clock of Redis, because the clocks of the machines may differ.
   */
  now(): number {
    return Date.now() + this.#aheadMs;
  }

  /** Opens a connection. If a command gets no answer in time, closes the connection, which may be dead. */
  open(options: RedisOptions & { commandTimeout: number } = PATIENT): Redis {
    const { url, ...connection } = this.options.connection;
    const all: RedisOptions = {
      keepAlive: 10_000,
      ...connection,
      retryStrategy: (times) => Math.min(times * 100, MAX_RETRY_MS),
      ...options,
    };
    const redis = url === undefined ? new Redis(all) : new Redis(url, all);
    const send = redis.sendCommand.bind(redis);
    const watched = new WeakSet<object>();
    redis.sendCommand = (command, ...others) => {
      // ioredis sends an unanswered command again on the next connection, even after its timeout.
      // Each command is watched only once, so that it does not close the next connection too.
      if (!watched.has(command)) leaveIfSilent(redis.stream, command.promise, options);
      watched.add(command);
      return send(command, ...others);
    };
    redis.on('error', () => {}); // the connection `commands` reports the error
    this.#connections.push(redis);
    return redis;
  }

  /** @returns whether Redis answers. Waits up to 1 s for the first connection. */
  async isUp(): Promise<boolean> {
    return this.up || (!this.#away && this.whenUp(this.now() + FIRST_CONNECTION_MS));
  }

  /** Waits for Redis until the deadline, a time of {@link now}. @returns whether Redis answers. */
  async whenUp(deadline: number): Promise<boolean> {
    while (!this.up && !this.#wake.signal.aborted && this.now() < deadline) {
      const { signal } = this.#wake;
      await delay(deadline - this.now(), undefined, { signal }).catch(() => {});
    }
    return this.up;
  }

  /** Closes all connections at once, whether Redis answers or not. */
  close(): void {
    this.#away = true; // so that the close is not logged
    this.#wake.abort();
    for (const redis of this.#connections) redis.disconnect();
  }

  #onReady(): void {
    if (this.#away) this.logger.warn('Redis of the queues is back');
    this.#away = false;
    void this.#readClock();
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  #onAway(why: string): void {
    if (this.#away) return;
    this.#away = true;
    const fate = this.options.onUnavailable === 'local' ? 'run in this process' : 'are refused';
    this.logger.warn(
      `Redis of the queues cannot be reached (${oneLine(why || 'no connection')}): calls that come ${fate} until it is back`,
    );
  }

  async #readClock(): Promise<void> {
    try {
      const askedAt = Date.now();
      const [seconds, microseconds] = await this.commands.time();
      const tripMs = Date.now() - askedAt;
      this.#aheadMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - askedAt - tripMs / 2;
    } catch {
      // Some hosted Redis services refuse TIME. With these, the clocks of the machines must agree.
    }
  }

  /** Warns if Redis deletes keys when its memory is full, because jobs would be lost. */
  async #checkEviction(): Promise<void> {
    try {
      const policy = /^maxmemory_policy:(\S+)/m.exec(await this.commands.info('memory'))?.[1];
      if (policy === undefined || policy === 'noeviction') return;
      this.logger.warn(
        `Redis of the queues has maxmemory-policy ${oneLine(policy)}, and may throw jobs away; set it to noeviction`,
      );
    } catch {
      // Some hosted Redis services refuse INFO. With these, only the warning is lost.
    }
  }
}

function leaveIfSilent(
  stream: Redis['stream'] | undefined,
  answer: Promise<unknown>,
  { commandTimeout }: { readonly commandTimeout: number },
): void {
  answer.catch(({ message }: Error) => {
    if (message !== 'Command timed out') return;
    stream?.destroy(new Error(`it did not answer within ${commandTimeout / 1_000} s`));
  });
}
