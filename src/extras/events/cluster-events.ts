import { setMaxListeners } from 'node:events';
import { deserialize } from 'node:v8';
import {
  Inject,
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
  Optional,
} from '@nestjs/common';
import { EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import { currentLink } from '../../bootstrap/current-link.js';
import { clean, ClusterConfigurationError, messageOf, oneLine } from '../../errors/index.js';
import { encodePayload } from '../../hub/client/encode-payload.js';
import type { HubClient } from '../../hub/client/hub-client.js';
import { orNone } from '../../hub/client/hub-error.js';
import type { EventPush } from '../../hub/client/hub-listener.interface.js';
import type { Answer } from '../../hub/client/question.js';
import { hubOf } from '../../hub/client/hub-of-process.js';
import { MAX_TEXT_LENGTH } from '../../hub/protocol.js';
import { checkDuration } from '../../options/validate.js';
import { ClusterRequestError } from './events.errors.js';

/** Who is to hear of it: every worker, all but this one, any one of them, or that of a slot. */
export type EventReceivers = 'all' | 'others' | 'one' | number;

/** Whom a request asks, and how long it waits. */
export interface ClusterRequestOptions {
  /** Default: `one`. */
  readonly to?: 'one' | number | undefined;
  /** How long to wait for the answer, 0..2^31-1 ms. Default: 5,000. */
  readonly deadlineMs?: number | undefined;
}

const DEADLINE_MS = 1_000;
const REQUEST_MS = 5_000;
const START_MS = 3_000;

/** The hub does not answer, or not in time. */
const NOT_SENT = { changed: 0, evicted: 1 };

/**
 * Events of @nestjs/event-emitter that reach the `@OnEvent()` methods of other workers, too. Each
 * reaches a worker at most once, those of one sender in their order. Payloads are copied as
 * `structuredClone()` would. Provide it where it is injected; several of one app are one to others.
 */
@Injectable()
export class ClusterEvents
  implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #logger = new Logger('ClusterEvents');
  readonly #closing = new AbortController();
  #found: HubClient | undefined;
  #leave: (() => Promise<void>) | undefined;

  constructor(
    @Optional() @Inject(EventEmitter2) private readonly emitter: EventEmitter2,
    @Optional()
    @Inject(EventEmitterReadinessWatcher)
    private readonly methods?: EventEmitterReadinessWatcher,
  ) {
    setMaxListeners(0, this.#closing.signal); // one for each request
  }

  /** @throws ClusterConfigurationError without `EventEmitterModule`. */
  async onModuleInit(): Promise<void> {
    if ((this.emitter as unknown) === undefined) {
      const error = new ClusterConfigurationError(
        'ClusterEvents found no EventEmitterModule of @nestjs/event-emitter; add EventEmitterModule.forRoot() to the imports',
      );
      await currentLink()?.reportBootFailure(error);
      throw error;
    }
    await this.#hub.ready(START_MS);
  }

  /** `@OnEvent()` methods begin to listen in this hook, too, and perhaps later: it does not wait for them. */
  onApplicationBootstrap(): void {
    const hub = this.#hub;
    if (hub.emitters.has(this.emitter)) return;
    hub.emitters.add(this.emitter);
    const listening = this.methods?.waitUntilReady() ?? Promise.resolve();
    void listening.then(() => this.#join(hub));
  }

  /** While its methods still listen: with its answer the hub has sent what it had for this worker. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#leave?.();
  }

  onApplicationShutdown(): void {
    this.#closing.abort();
  }

  /**
   * @returns to how many workers it was sent; 0 where the hub does not answer.
   * @throws UncloneableValueError for a payload that cannot be sent, ClusterConfigurationError for
   * such a name.
   */
  async emit(name: string, payload?: unknown, to: EventReceivers = 'all'): Promise<number> {
    const body = encode(name, payload);
    const question = { op: 'publish', name, form: 'v', to } as const;
    return this.#sentTo(await orNone(this.#hub.ask(question, DEADLINE_MS, body)));
  }

  /**
   * Has one worker answer: with what the first of its `@OnEvent()` methods returns.
   *
   * @throws ClusterRequestError where nobody answers in time, or the one who answers fails;
   * ClusterConfigurationError for a deadline or a name that cannot be; UncloneableValueError for such
   * a payload.
   */
  async request<T>(
    name: string,
    payload?: unknown,
    { to = 'one', deadlineMs = REQUEST_MS }: ClusterRequestOptions = {},
  ): Promise<T> {
    checkDuration('deadlineMs of a request', deadlineMs);
    const failed = (why: string) => new ClusterRequestError(name, why);
    const { signal } = this.#closing;
    if (signal.aborted) throw failed('this app is closed');
    const body = encode(name, payload);
    const question = { op: 'publish', name, form: 'v', to, request: true } as const;
    const asked = this.#hub.askUntil(question, Math.max(1, deadlineMs), { body, signal });
    const answer = await asked.catch((error: Error) => {
      this.#sentTo(undefined);
      throw failed(error.message);
    });
    if (signal.aborted) throw failed('this app is closed');
    if (answer === undefined) throw failed(`there was no answer within ${deadlineMs} ms`);
    if (answer.header.t !== 'reply') {
      this.#sentTo(answer);
      throw failed('there is no such worker, or it reads too slowly');
    }
    const value: unknown = deserialize(answer.body);
    if (answer.header.failed) throw failed(String(value));
    return value as T;
  }

  get #hub(): HubClient {
    return (this.#found ??= hubOf(currentLink()));
  }

  #join(hub: HubClient): void {
    const tell = (op: 'subscribe' | 'unsubscribe') => orNone(hub.ask({ op }, DEADLINE_MS));
    const unlisten = hub.listen({
      opened: () => void tell('subscribe'),
      pushed: (event, body) => void this.#hear(hub, event, body),
    });
    if (hub.open) void tell('subscribe');
    this.#leave = async () => {
      if (hub.open && hub.emitters.size === 1) await tell('unsubscribe'); // no other app of the process listens
      hub.emitters.delete(this.emitter);
      unlisten();
    };
  }

  /** Counts the workers that missed it. */
  #sentTo(answer: Answer | undefined): number {
    const { changed, evicted } = answer?.header.t === 'done' ? answer.header : NOT_SENT;
    if (evicted > 0) this.#hub.noteOutcome('events', 'dropped', evicted);
    return changed;
  }

  async #hear(hub: HubClient, event: EventPush, body: Buffer): Promise<void> {
    if (event.request !== undefined) return this.#reply(hub, event, body);
    try {
      await this.emitter.emitAsync(event.name, deserialize(body));
    } catch (error) {
      // Its sender has nothing to do with it, and neither the process nor the connection may end by it.
      const what = `a listener of the event '${event.name}' threw: ${messageOf(error)}`;
      this.#logger.error(oneLine(what), error instanceof Error ? error.stack : undefined);
    }
  }

  async #reply(hub: HubClient, { name, from, request }: EventPush, body: Buffer): Promise<void> {
    const header = { op: 'reply', to: from, request: request!, form: 'v' } as const;
    // The emitter of another app of this process may be the one that has a listener.
    const emitters = [...hub.emitters];
    const listening = emitters.find((each) => each.listeners(name).length > 0);
    if (this.emitter !== (listening ?? emitters[0])) return;
    const reply = (failed: boolean, value: unknown): void => {
      hub.tell({ ...header, failed }, encodePayload('the answer', value));
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

function encode(name: string, payload: unknown): Buffer {
  if (name.length > MAX_TEXT_LENGTH) {
    throw new ClusterConfigurationError(
      `the name of an event has ${name.length} characters; it may have ${MAX_TEXT_LENGTH}: put what varies into the payload`,
    );
  }
  return encodePayload(`the payload of the event '${name}'`, payload);
}
