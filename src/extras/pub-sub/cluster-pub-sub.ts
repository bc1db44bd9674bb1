import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import { currentLink } from '../../bootstrap/current-link.js';
import { oneLine } from '../../errors/index.js';
import { encodePayload } from '../../hub/client/encode-payload.js';
import { HubChannels } from '../../hub/client/hub-channels.js';
import { hubOf } from '../../hub/client/hub-of-process.js';
import { readMessages } from './read-messages.js';

/** One for all triggers: a trigger may be of a single object, and there may be very many. */
const CHANNEL = 'pub-sub';

/** A subscription does not wait longer for the hub: it hears what this process publishes. */
const JOIN_MS = 3_000;

interface Subscription {
  readonly trigger: string;
  readonly hear: (payload: never) => void;
}

/**
 * A `PubSub` for GraphQL subscriptions that reaches the subscribers of all workers, with the methods
 * of `PubSubEngine` of graphql-subscriptions. All workers hear what is published in one order, each
 * message at most once. Payloads are copied as `structuredClone()` would.
 */
@Injectable()
export class ClusterPubSub implements BeforeApplicationShutdown {
  readonly #logger = new Logger('ClusterPubSub');
  readonly #name = randomUUID();
  readonly #subscriptions = new Map<number, Subscription>();
  readonly #closing = new AbortController();
  #lastId = 0;
  #channels: HubChannels | undefined;
  #joined: Promise<void> | undefined;

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
    onMessage: (payload: never) => void,
    _options?: object,
  ): Promise<number> {
    const id = (this.#lastId += 1);
    this.#subscriptions.set(id, { trigger, hear: onMessage });
    this.#open();
    await Promise.race([this.#joined, delay(JOIN_MS, undefined, { ref: false })]);
    return id;
  }

  unsubscribe(id: number): void {
    this.#subscriptions.delete(id);
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
    this.#subscriptions.clear();
    this.#channels?.part(this.#name);
  }

  /** Not before it is used: a module may be loaded before `bootstrap()` is called. */
  #open(): HubChannels {
    if (this.#channels !== undefined) return this.#channels;
    const link = currentLink();
    const channels = new HubChannels(hubOf(link), (message) => link?.warn(message));
    this.#joined = new Promise((joined) => {
      const said = (body: Buffer): void => this.#deliver(body);
      channels.join(CHANNEL, this.#name, { said, left: () => {}, joined });
    });
    return (this.#channels = channels);
  }

  #deliver(body: Buffer): void {
    const [trigger, payload] = deserialize(body) as [string, never];
    for (const subscription of this.#subscriptions.values()) {
      if (subscription.trigger !== trigger) continue;
      try {
        subscription.hear(payload);
      } catch (error) {
        this.#logger.error(`a subscriber of ${oneLine(trigger)} failed: ${oneLine(String(error))}`);
      }
    }
  }
}
