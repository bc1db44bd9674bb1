import type { Logger } from '@nestjs/common';
import { Redis, type RedisOptions } from 'ioredis';
import { oneLine } from '../../errors/index.js';
import type { ResolvedQueueOptions } from './queue-options.js';

/** A server that does not answer is as good as away. */
const COMMAND_TIMEOUT_MS = 5_000;

/** Of ioredis. */
export const TIMED_OUT = 'Command timed out';

const MAX_RETRY_MS = 1_000;

/** The connections to Redis: whether it is there, and what is said about that. */
export class RedisLink {
  /** Fails at once while Redis is away. */
  readonly commands: Redis;
  readonly #connections: Redis[] = [];
  readonly #waiting = new Set<() => void>();
  #saidAway = false;
  #warned = false;
  #closed = false;
  #leaving = false;
  #aheadMs = 0;

  constructor(
    private readonly options: Pick<ResolvedQueueOptions, 'connection' | 'onUnavailable'>,
    private readonly logger: Pick<Logger, 'warn'>,
  ) {
    this.commands = this.open({
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: COMMAND_TIMEOUT_MS,
    });
    this.commands.on('ready', () => this.#onReady());
    this.commands.on('error', (error) => this.#onAway(error.message));
    this.commands.on('close', () => {
      this.#leaving = false;
      this.#onAway('its connection was closed');
    });
  }

  /** It was there, or was looked for, and is not. */
  get away(): boolean {
    return this.#saidAway;
  }

  get up(): boolean {
    return this.commands.status === 'ready' && !this.#leaving;
  }

  /**
   * How far the clock of Redis is ahead of this machine's. Machines tell each other times by that
   * clock: their own may differ. 0 until it is known.
   */
  get aheadMs(): number {
    return this.#aheadMs;
  }

  /** Another connection, which waits for Redis and sends again. */
  open(options: RedisOptions): Redis {
    const { url, ...connection } = this.options.connection;
    const all: RedisOptions = {
      keepAlive: 10_000,
      ...connection,
      retryStrategy: (times) => Math.min(times * 100, MAX_RETRY_MS),
      ...options,
    };
    const redis = url === undefined ? new Redis(all) : new Redis(url, all);
    redis.on('error', () => {}); // told of once, by the first connection
    this.#connections.push(redis);
    return redis;
  }

  /** @returns whether Redis is there, by then at the latest (ms since the epoch). */
  async whenUp(deadline: number): Promise<boolean> {
    if (this.up || this.#closed) return this.up;
    let done!: () => void;
    const timer = setTimeout(() => done(), deadline - Date.now());
    await new Promise<void>((resolve) => this.#waiting.add((done = resolve)));
    clearTimeout(timer);
    this.#waiting.delete(done);
    return this.up;
  }

  /**
   * A command of {@link commands} has failed. A server that hangs keeps its connections: one that
   * does not answer is left, and is looked for anew.
   */
  failed(error: Error): void {
    if (error.message !== TIMED_OUT || !this.up) return;
    // It has the connection closed, and until it has ended the status is as it was.
    this.#leaving = true;
    this.#onAway(`it did not answer within ${COMMAND_TIMEOUT_MS / 1_000} s`);
    this.commands.disconnect(true);
  }

  /** At once, whatever Redis does. */
  close(): void {
    this.#closed = true;
    for (const redis of this.#connections) redis.disconnect();
    for (const done of this.#waiting) done();
  }

  #onReady(): void {
    if (this.#saidAway) this.logger.warn('Redis of the queues is back');
    this.#saidAway = false;
    void this.#readClock();
    for (const done of this.#waiting) done();
    if (!this.#warned) void this.#checkEviction();
  }

  #onAway(why: string): void {
    if (this.#saidAway || this.#closed) return;
    this.#saidAway = true;
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
      // Some that are hosted refuse it: then the clocks of the machines have to be in step.
    }
  }

  /** A Redis that throws keys away when its memory is full loses jobs. */
  async #checkEviction(): Promise<void> {
    try {
      const policy = /^maxmemory_policy:(\S+)/m.exec(await this.commands.info('memory'))?.[1];
      if (policy === undefined || policy === 'noeviction' || this.#warned) return;
      this.#warned = true;
      this.logger.warn(
        `Redis of the queues has maxmemory-policy ${oneLine(policy)}, and may throw jobs away; set it to noeviction`,
      );
    } catch {
      // Some that are hosted refuse INFO; a connection that was lost asks again.
    }
  }
}
