import { setTimeout as delay } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { Logger } from '@nestjs/common';
import type { EventEmitter2 } from '@nestjs/event-emitter';
import { clean, messageOf, oneLine } from '../../contract/errors/index.js';
import { encodePayload } from '../client/encode-payload.js';
import type { HubClient } from '../client/hub-client.js';
import { orNone } from '../client/hub-error.js';
import type { EventPush } from '../client/hub-listener.interface.js';

/** Also for handlers that were begun while the process drained: its drain has waited for older ones. */
const DEADLINE_MS = 1_000;

/** What other workers send to the `@OnEvent()` methods of one app. */
export class EventHandlers {
  readonly #logger = new Logger('ClusterEvents');
  /** Calls that have not ended, and since when. */
  readonly #running = new Map<Promise<void>, number>();
  #unlisten: () => void = () => {};
  #leaving = false;

  constructor(
    private readonly hub: HubClient,
    private readonly emitter: EventEmitter2,
  ) {}

  join(): void {
    const { hub } = this;
    this.#unlisten = hub.listen({
      opened: () => void this.#tell('subscribe'),
      pushed: (event, body) => this.#begin(event, body),
    });
    if (hub.open) void this.#tell('subscribe');
  }

  /** The process drains. What others can answer as well is no longer asked here. */
  hasBegunBefore(before: number): boolean {
    if (!this.#leaving && this.hub.open)
      void orNone(this.hub.ask({ op: 'subscribe', leaving: true }, DEADLINE_MS));
    this.#leaving = true;
    return [...this.#running.values()].some((since) => since <= before);
  }

  /** With its answer the hub has sent what it had for this worker. With the second it has the answers. */
  async leave(): Promise<void> {
    const { hub, emitter } = this;
    const isLast = hub.emitters.size === 1; // else another app of the process listens
    if (hub.open && isLast) await this.#tell('unsubscribe');
    hub.emitters.delete(emitter);
    this.#unlisten();
    if (this.#running.size === 0) return;
    const over = new AbortController();
    const deadline = delay(DEADLINE_MS, undefined, { signal: over.signal }).catch(() => {});
    await Promise.race([Promise.all(this.#running.keys()), deadline]);
    over.abort();
    if (hub.open && isLast) await this.#tell('unsubscribe');
  }

  #tell(op: 'subscribe' | 'unsubscribe'): Promise<unknown> {
    return orNone(this.hub.ask({ op }, DEADLINE_MS));
  }

  #begin(event: EventPush, body: Buffer): void {
    const call = event.request === undefined ? this.#hear(event, body) : this.#reply(event, body);
    this.#running.set(call, performance.now());
    void call.finally(() => this.#running.delete(call));
  }

  async #hear(event: EventPush, body: Buffer): Promise<void> {
    try {
      await this.emitter.emitAsync(event.name, deserialize(body));
    } catch (error) {
      // Its sender has nothing to do with it, and neither the process nor the connection may end by it.
      const what = `a listener of the event '${event.name}' threw: ${messageOf(error)}`;
      this.#logger.error(oneLine(what), error instanceof Error ? error.stack : undefined);
    }
  }

  async #reply({ name, from, request }: EventPush, body: Buffer): Promise<void> {
    const header = { op: 'reply', to: from, request: request!, form: 'v' } as const;
    // The emitter of another app of this process may be the one that has a listener.
    const emitters = [...this.hub.emitters];
    const listening = emitters.find((each) => each.listeners(name).length > 0);
    if (this.emitter !== (listening ?? emitters[0])) return;
    const reply = (failed: boolean, value: unknown): void => {
      this.hub.tell({ ...header, failed }, encodePayload('the answer', value));
    };
    if (listening === undefined) return reply(true, 'nobody listens to it there');
    try {
      const earlier = this.emitter.listenersAny().length; // those of onAny() are called first
      reply(false, (await this.emitter.emitAsync(name, deserialize(body)))[earlier]);
    } catch (error) {
      reply(true, clean(messageOf(error)));
    }
  }
}
