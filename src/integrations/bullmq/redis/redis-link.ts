import type { Logger } from '@nestjs/common';
import { Redis, type RedisOptions } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';
import { oneLine } from '../../../contract/errors/index.js';
import type { ResolvedQueueOptions } from '../queue-options.js';

/** Fails at once while Redis is away. A server that does not answer is as good as away. */
const IMPATIENT = { enableOfflineQueue: false, maxRetriesPerRequest: 0, commandTimeout: 5_000 };

/** Waits for Redis, and sends again. BullMQ itself waits for up to 10 s for a job. */
const PATIENT = { maxRetriesPerRequest: null, commandTimeout: 15_000 };

const MAX_RETRY_MS = 1_000;

/** A process that has just started gives Redis so long to be there. */
const FIRST_CONNECTION_MS = 1_000;

/** The connections to Redis: whether it is there, and what is said about that. */
export class RedisLink {
  /** Fails at once while Redis is away. */
  readonly commands: Redis;
  readonly #connections: Redis[] = [];
  /** It was there, or was looked for, and is not. */
  #away = false;
  /** Ends the wait for it. */
  #wake = new AbortController();
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
   * Ms since the epoch by the clock of Redis, as far as it is known. Machines tell each other times
   * by that clock: their own may differ.
   */
  now(): number {
    return Date.now() + this.#aheadMs;
  }

  /** Another connection. One on which a command has no answer in time is left: it may look well, and be dead. */
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
      // ioredis sends it again on the next connection, also if its time is up: that one is left alone.
      if (!watched.has(command)) leaveIfSilent(redis.stream, command.promise, options);
      watched.add(command);
      return send(command, ...others);
    };
    redis.on('error', () => {}); // told of once, by the first connection
    this.#connections.push(redis);
    return redis;
  }

  /** @returns whether Redis is there. If nobody has looked for it yet, it is given a moment. */
  async isUp(): Promise<boolean> {
    return this.up || (!this.#away && this.whenUp(this.now() + FIRST_CONNECTION_MS));
  }

  /** @returns whether Redis is there, by then at the latest ({@link now}). */
  async whenUp(deadline: number): Promise<boolean> {
    while (!this.up && !this.#wake.signal.aborted && this.now() < deadline) {
      const { signal } = this.#wake;
      await delay(deadline - this.now(), undefined, { signal }).catch(() => {});
    }
    return this.up;
  }

  /** Closes the connections at once, in any state of Redis. */
  close(): void {
    this.#away = true; // which is not said
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
      // Some that are hosted refuse it: then the clocks of the machines have to be in step.
    }
  }

  /** A Redis that throws keys away when its memory is full loses jobs. */
  async #checkEviction(): Promise<void> {
    try {
      const policy = /^maxmemory_policy:(\S+)/m.exec(await this.commands.info('memory'))?.[1];
      if (policy === undefined || policy === 'noeviction') return;
      this.logger.warn(
        `Redis of the queues has maxmemory-policy ${oneLine(policy)}, and may throw jobs away; set it to noeviction`,
      );
    } catch {
      // Some that are hosted refuse INFO.
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
