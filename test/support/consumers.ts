import { Logger } from '@nestjs/common';
import { type ClientProxy, ClientProxyFactory, Transport } from '@nestjs/microservices';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { setTimeout as delay } from 'node:timers/promises';
import { firstValueFrom, timeout } from 'rxjs';
import { onTestFinished } from 'vitest';
import { RedisProcess } from './redis-process.js';

/** Longest wait for an answer: a killed worker never answers. */
const ANSWER_MS = 10_000;

/** Adds jobs to the queue of `test/fixtures/behaviours/consumer.mjs` and follows their outcomes. */
export class Jobs {
  readonly acknowledged: string[] = [];
  readonly #stop = new AbortController();

  private constructor(
    readonly queue: Queue,
    readonly redis: Redis,
  ) {}

  static async start(): Promise<{ jobs: Jobs; port: number }> {
    const server = await RedisProcess.start();
    const { port } = server;
    const connection = { host: '127.0.0.1', port };
    const queue = new Queue('jobs', { connection });
    const redis = new Redis(connection);
    onTestFinished(async () => {
      await queue.close();
      redis.disconnect();
      await server.stop();
    });
    return { jobs: new Jobs(queue, redis), port };
  }

  async add(id: string, ms: number): Promise<void> {
    await this.queue.add('job', { id, ms });
    this.acknowledged.push(id);
  }

  /** Adds one after the other until {@link stop}. */
  async keepAdding(pauseMs: number, ms: number): Promise<void> {
    for (let i = 0; !this.#stop.signal.aborted; i += 1) {
      await this.add(`job-${i}`, ms);
      await delay(pauseMs);
    }
  }

  stop(): void {
    this.#stop.abort();
  }

  /** The jobs that Redis has acknowledged, but no consumer has done. */
  async lost(): Promise<string[]> {
    const done = new Set(await this.redis.smembers('jobs-done'));
    return this.acknowledged.filter((id) => !done.has(id));
  }
}

/** Sends messages over TCP, each again until it is answered. */
export class Messages {
  readonly acknowledged: string[] = [];
  /** Why one had to be sent again. */
  readonly failures: unknown[] = [];
  readonly #client: ClientProxy;
  #stopped = false;

  constructor(
    port: number,
    private readonly pattern = 'note',
  ) {
    Logger.overrideLogger(false); // each connection of a worker that is killed would be a line
    this.#client = ClientProxyFactory.create({
      transport: Transport.TCP,
      options: { host: '127.0.0.1', port },
    });
    onTestFinished(async () => {
      this.#stopped = true;
      await this.#client.close();
    });
  }

  async send(id: string, ms: number): Promise<void> {
    while (!this.acknowledged.includes(id)) {
      try {
        const answer = this.#client.send<unknown>(this.pattern, { id, name: id, ms });
        await firstValueFrom(answer.pipe(timeout(ANSWER_MS)));
        this.acknowledged.push(id);
      } catch (error) {
        this.failures.push(error);
        if (this.#stopped) return;
        await delay(50);
      }
    }
  }

  /** Sends one after the other until {@link stop}. */
  async keepSending(name: string, pauseMs: number, ms: number): Promise<void> {
    for (let i = 0; !this.#stopped; i += 1) {
      await this.send(`${name}-${i}`, ms);
      await delay(pauseMs);
    }
  }

  stop(): void {
    this.#stopped = true;
  }
}
