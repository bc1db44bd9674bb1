import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { currentLink } from '../../contract/snapshot/current-link.js';
import { messageOf, oneLine } from '../../contract/errors/index.js';
import { encodePayload } from '../client/encode-payload.js';
import { HubChannels } from '../client/hub-channels.js';
import { hubOf } from '../client/hub-of-process.js';
import { readMessages } from './read-messages.js';

/** One for all triggers: a trigger may be of a single object, and there may be very many. */
const CHANNEL = 'pub-sub';

/** Subscriptions do not wait longer for the hub: they hear what this process publishes. */
const JOIN_MS = 3_000;

type Hear = (payload: never) => unknown;

/**
 * A `PubSub` for GraphQL subscriptions that reaches the subscribers of all workers, with the methods
 * of `PubSubEngine` of graphql-subscriptions. All workers hear what is published in one order, each
 * message at most once. Payloads are copied as `structuredClone()` would.
 */
@Injectable()
export class ClusterPubSub implements BeforeApplicationShutdown {
  readonly #logger = new Logger('ClusterPubSub');
  readonly #name = randomUUID();
  /** By trigger and by the number of the subscription: one message concerns few of very many. */
  readonly #subscribers = new Map<string, Map<number, Hear>>();
  readonly #triggers = new Map<number, string>();
  readonly #closing = new AbortController();
  #lastId = 0;
  #channels: HubChannels | undefined;
  #joined: Promise<unknown> | undefined;

  constructor() {
    setMaxListeners(0, this.#closing.signal); // one for each reader
  }

  /**
   * Resolves once it is on its way to all workers, in its order.
   *
   * @throws UncloneableValueError where the payload cannot be sent.
   */
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

  /** @returns what {@link unsubscribe} takes. What is published from now on is heard. */
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

  /** What is published on any of these, from the first `next()` on. A reader that falls far behind is ended with an error. */
  asyncIterableIterator<T>(triggers: string | readonly string[]): AsyncIterableIterator<T> {
    const begin = async (hear: (payload: T) => void) => {
      const ids = await Promise.all([triggers].flat().map((each) => this.subscribe(each, hear)));
      return () => ids.forEach((id) => this.unsubscribe(id));
    };
    return readMessages(begin, this.#closing.signal);
  }

  /** Before the HTTP server waits for what reads them. */
  beforeApplicationShutdown(): void {
    this.#closing.abort();
    this.#subscribers.clear();
    this.#triggers.clear();
    this.#channels?.part(this.#name);
  }

  /** Not before it is used: a module may be loaded before `bootstrap()` is called. */
  #open(): HubChannels {
    if (this.#channels !== undefined) return this.#channels;
    const link = currentLink();
    const channels = new HubChannels(hubOf(link), (message) => link?.warn(message));
    const joined = new Promise<void>((resolve) => {
      const said = (body: Buffer): void => this.#deliver(body);
      channels.join(CHANNEL, this.#name, { said, left: () => {}, joined: resolve });
    });
    this.#joined = Promise.race([joined, delay(JOIN_MS, undefined, { ref: false })]);
    return (this.#channels = channels);
  }

  #deliver(body: Buffer): void {
    void this.#logging('a message of another worker cannot be read', () => {
      const [trigger, payload] = deserialize(body) as [string, never];
      for (const hear of this.#subscribers.get(trigger)?.values() ?? []) {
        void this.#logging(`a subscriber of ${trigger} failed`, () => hear(payload));
      }
    });
  }

  /** Neither other subscribers, nor the connection to the hub, nor the process may end by it. */
  async #logging(failure: string, run: () => unknown): Promise<void> {
    try {
      await run();
    } catch (error) {
      this.#logger.error(oneLine(`${failure}: ${messageOf(error)}`));
    }
  }
}
