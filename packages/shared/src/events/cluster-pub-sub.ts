import { randomUUID } from 'node:crypto';
import { EventEmitter, on } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { HubChannels } from '../client/hub-channels.js';
import { hubOf } from '../client/hub-of-process.js';
import { encode, messageOf } from '../options.js';

/** One channel for all triggers, because an app may have very many triggers. */
const CHANNEL = 'pub-sub';

/** Maximum wait for the hub, in ms. After that, a subscription gets only the messages of this process. */
const JOIN_MS = 3_000;

/**
 * A `PubSub` for GraphQL subscriptions. It reaches the subscribers of all workers. It has the
 * methods of graphql-subscriptions' `PubSubEngine`. All workers get the messages in the same order, and
 * each message at most once. Payloads are copied as if by `structuredClone()`.
 */
@Injectable()
export class ClusterPubSub implements BeforeApplicationShutdown {
  readonly #logger = new Logger('ClusterPubSub');
  readonly #name = randomUUID();
  /** Emits `on <trigger>` for each message, and `end` at shutdown. */
  readonly #emitter = new EventEmitter().setMaxListeners(0);
  /** Functions that end a subscription, by subscription number. */
  readonly #unsubscribe = new Map<number, () => void>();
  #closed = false;
  #lastId = 0;
  #channels: HubChannels | undefined;
  #joined: Promise<unknown> | undefined;

  /** Publishes a message. Resolves when the hub has placed it in the common order, or cannot deliver it. */
  async publish(trigger: string, payload: unknown): Promise<void> {
    const body = encode(`the payload published on '${trigger}'`, [trigger, payload]);
    if (this.#closed) return;
    await new Promise<void>((resolve) => {
      this.#open().say(this.#name, body, {
        echo: () => {
          this.#deliver(body);
          resolve();
        },
      });
    });
  }

  /** @returns the number for {@link unsubscribe}. Once the promise resolves, no later message is missed. */
  async subscribe(
    trigger: string,
    onMessage: (payload: never) => unknown,
    _options?: object,
  ): Promise<number> {
    const id = (this.#lastId += 1);
    const listener = (payload: unknown): void =>
      void this.#logging(`a subscriber to ${trigger} failed`, () => onMessage(payload as never));
    this.#emitter.on(`on ${trigger}`, listener);
    this.#unsubscribe.set(id, () => this.#emitter.off(`on ${trigger}`, listener));
    this.#open();
    await this.#joined;
    return id;
  }

  unsubscribe(id: number): void {
    this.#unsubscribe.get(id)?.();
    this.#unsubscribe.delete(id);
  }

  /** The messages of these triggers. Subscribes on the first `next()`. */
  asyncIterableIterator<T>(triggers: string | readonly string[]): AsyncIterableIterator<T> {
    const own = new EventEmitter();
    const messages = on(own, 'message', { close: ['end'] });
    let begun: Promise<number[]> | undefined;
    const begin = () =>
      (begun ??= Promise.all(
        [triggers].flat().map((each) => this.subscribe(each, (it) => own.emit('message', it))),
      ));
    const end = (): void => {
      this.#emitter.off('end', end);
      void begun?.then((ids) => ids.forEach((id) => this.unsubscribe(id)));
      own.emit('end');
    };
    this.#emitter.once('end', end);
    if (this.#closed) end();
    return {
      next: async () => {
        if (!this.#closed) await begin();
        const { done, value } = (await messages.next()) as IteratorResult<[T], undefined>;
        return done === true ? { done, value } : { done: false, value: value[0] };
      },
      return: async () => {
        end();
        return { done: true, value: undefined };
      },
      throw: async (error) => {
        end();
        throw error;
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** Ends all iterators, because the HTTP server would wait for them. */
  beforeApplicationShutdown(): void {
    this.#closed = true;
    this.#emitter.emit('end');
    for (const id of this.#unsubscribe.keys()) this.unsubscribe(id);
    this.#channels?.part(this.#name);
  }

  /** Connects on first use, because the class may be created before `bootstrap()` is called. */
  #open(): HubChannels {
    if (this.#channels !== undefined) return this.#channels;
    const hub = hubOf();
    const channels = new HubChannels(hub);
    const joined = new Promise<void>((resolve) => {
      const said = (body: Buffer): void => this.#deliver(body);
      channels.join(CHANNEL, this.#name, { said, left: () => {}, joined: resolve });
    });
    const late = delay(JOIN_MS, undefined, { ref: false });
    this.#joined = hub
      .ready(JOIN_MS)
      .then((open) => (open ? Promise.race([joined, late]) : undefined));
    return (this.#channels = channels);
  }

  #deliver(body: Buffer): void {
    void this.#logging('a message from another worker cannot be read', () => {
      const [trigger, payload] = deserialize(body) as [string, unknown];
      this.#emitter.emit(`on ${trigger}`, payload);
    });
  }

  /** Logs an error, so that it does not affect other subscribers, the hub's connection or the process. */
  async #logging(failure: string, run: () => unknown): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.#logger.error(`${failure}: ${messageOf(error)}`);
    }
  }
}
