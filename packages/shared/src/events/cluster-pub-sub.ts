import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { messageOf } from '../options.js';
import { encodePayload } from '../client/encode-payload.js';
import { HubChannels } from '../client/hub-channels.js';
import { hubOf, loadHub } from '../client/hub-of-process.js';
import { readMessages } from './read-messages.js';

/** One channel for all triggers, because an app may have a trigger for each of many objects. */
const CHANNEL = 'pub-sub';

/** Maximum wait for the hub, in ms. Beyond it, a subscription gets only the messages of this process. */
const JOIN_MS = 3_000;

type OnMessage = (payload: never) => unknown;

/**
 * A `PubSub` for GraphQL subscriptions that reaches the subscribers of all workers. It has the
 * methods of `PubSubEngine` of graphql-subscriptions. All workers get the messages in one order,
 * and each message at most once. Payloads are copied as by `structuredClone()`.
 */
@Injectable()
export class ClusterPubSub implements BeforeApplicationShutdown {
  readonly #logger = new Logger('ClusterPubSub');
  readonly #name = randomUUID();
  /** The subscribers by trigger, then by the number of their subscription. */
  readonly #subscribers = new Map<string, Map<number, OnMessage>>();
  readonly #triggers = new Map<number, string>();
  readonly #closing = new AbortController();
  #lastId = 0;
  #channels: HubChannels | undefined;
  #joined: Promise<unknown> | undefined;

  constructor() {
    setMaxListeners(0, this.#closing.signal); // one listener for each reader
    loadHub();
  }

  /** Publishes a message. Resolves when the message has its place in the order of all workers. */
  async publish(trigger: string, payload: unknown): Promise<void> {
    const body = encodePayload(`what is published on '${trigger}'`, [trigger, payload]);
    if (this.#closing.signal.aborted) return;
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
    let subscribers = this.#subscribers.get(trigger);
    if (subscribers === undefined) this.#subscribers.set(trigger, (subscribers = new Map()));
    subscribers.set(id, onMessage);
    this.#triggers.set(id, trigger);
    this.#open();
    await this.#joined;
    return id;
  }

  unsubscribe(id: number): void {
    const trigger = this.#triggers.get(id);
    if (trigger === undefined) return;
    this.#triggers.delete(id);
    const subscribers = this.#subscribers.get(trigger)!;
    subscribers.delete(id);
    if (subscribers.size === 0) this.#subscribers.delete(trigger);
  }

  /**
   * The messages of these triggers. Subscribes at the first `next()`. Above 10,000 unread messages,
   * `next()` rejects with an error.
   */
  asyncIterableIterator<T>(triggers: string | readonly string[]): AsyncIterableIterator<T> {
    const begin = async (onMessage: (payload: T) => void) => {
      const all = [triggers].flat();
      const ids = await Promise.all(all.map((each) => this.subscribe(each, onMessage)));
      return () => ids.forEach((id) => this.unsubscribe(id));
    };
    return readMessages(begin, this.#closing.signal);
  }

  /** Ends all readers before the HTTP server waits for them. */
  beforeApplicationShutdown(): void {
    this.#closing.abort();
    this.#subscribers.clear();
    this.#triggers.clear();
    this.#channels?.part(this.#name);
  }

  /** Connects at the first use, because the class may be created before `bootstrap()` is called. */
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
    void this.#logging('a message of another worker cannot be read', () => {
      const [trigger, payload] = deserialize(body) as [string, never];
      for (const onMessage of this.#subscribers.get(trigger)?.values() ?? []) {
        void this.#logging(`a subscriber of ${trigger} failed`, () => onMessage(payload));
      }
    });
  }

  /** Logs an error, which must not reach other subscribers, the hub's connection or the process. */
  async #logging(failure: string, run: () => unknown): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.#logger.error(`${failure}: ${messageOf(error)}`);
    }
  }
}
