import { setTimeout as delay } from 'node:timers/promises';
import { deserialize } from 'node:v8';
import { Logger } from '@nestjs/common';
import type { EventEmitter2 } from '@nestjs/event-emitter';
import { type HubClient, orNone, type Push, type Question } from '../client/hub-client.js';
import { encode, messageOf } from '../options.js';

type EventPush = Extract<Push, { t: 'event' }>;

/** Maximum wait for the hub, and for calls that began during the drain, in ms. The drain has awaited older calls. */
const DEADLINE_MS = 1_000;

/** Maximum length of an error's message in a reply, in characters. */
const MAX_MESSAGE_LENGTH = 4_096;

/** How long draining workers still answer. In a shutdown, all workers drain and may still ask each other. */
const STILL_ASKED_MS = 5_000;

/** Calls the `@OnEvent()` methods of one app for the events of other workers. */
export class EventHandlers {
  readonly #logger = new Logger('ClusterEvents');
  /** The running calls, with their start times. */
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
      opened: () => void this.#tell({ op: 'subscribe' }),
      pushed: (push, body) => push.t === 'event' && this.#begin(push, body),
    });
    void this.#tell({ op: 'subscribe' });
  }

  /** Called while the process drains. From the first call on, the hub prefers other workers. */
  hasBegunBefore(before: number): boolean {
    if (!this.#leaving) void this.#tell({ op: 'subscribe', leaving: true });
    this.#leaving = true;
    return [...this.#running.values()].some((since) => since <= before + STILL_ASKED_MS);
  }

  /** Waits for running calls. The hub answers `unsubscribe` after it has sent all events for this worker. */
  async leave(): Promise<void> {
    const { hub, emitter } = this;
    // With several emitters, another app in the process still listens.
    if (hub.emitters.size === 1) await this.#tell({ op: 'unsubscribe' });
    hub.emitters.delete(emitter);
    this.#unlisten();
    if (this.#running.size === 0) return;
    await Promise.race([Promise.all(this.#running.keys()), delay(DEADLINE_MS)]);
    // The hub's answer shows that it has received all replies.
    await this.#tell({ op: 'unsubscribe' });
  }

  async #tell(question: Question): Promise<void> {
    if (this.hub.open) await orNone(this.hub.ask(question, DEADLINE_MS));
  }

  #begin(event: EventPush, body: Buffer): void {
    const call = event.request === undefined ? this.#call(event, body) : this.#reply(event, body);
    this.#running.set(call, performance.now());
    void call.finally(() => this.#running.delete(call));
  }

  async #call(event: EventPush, body: Buffer): Promise<void> {
    try {
      await this.emitter.emitAsync(event.name, deserialize(body));
    } catch (error) {
      // The error is not the sender's, and must not end the process or the connection.
      const what = `a listener for the event '${event.name}' threw: ${messageOf(error)}`;
      this.#logger.error(what, error instanceof Error ? error.stack : undefined);
    }
  }

  async #reply({ name, from, request }: EventPush, body: Buffer): Promise<void> {
    const header = { op: 'reply', to: from, request: request! } as const;
    // The listener may be in another app of this process.
    const emitters = [...this.hub.emitters] as EventEmitter2[];
    const listening = emitters.find((each) => each.listeners(name).length > 0);
    if (this.emitter !== (listening ?? emitters[0])) return;
    const reply = (failed: boolean, value: unknown): void => {
      this.hub.tell({ ...header, failed }, encode('the answer', value));
    };
    if (listening === undefined) return reply(true, 'the worker has no listener for this event');
    try {
      const earlier = this.emitter.listenersAny().length; // listeners of onAny() are called first
      reply(false, (await this.emitter.emitAsync(name, deserialize(body)))[earlier]);
    } catch (error) {
      reply(true, messageOf(error).slice(0, MAX_MESSAGE_LENGTH));
    }
  }
}
