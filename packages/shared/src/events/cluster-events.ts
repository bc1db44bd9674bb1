import { setMaxListeners } from 'node:events';
import { deserialize } from 'node:v8';
import {
  Inject,
  Injectable,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type { EventEmitter2, EventEmitterReadinessWatcher } from '@nestjs/event-emitter';
import { ClusterConfigurationError } from 'nestjs-cluster/bootstrap';
import { validate } from '../options.js';
import { extension } from 'nestjs-cluster/extension';
import type { HubClient } from '../client/hub-client.js';
import type { Answer } from '../client/hub-client.interface.js';
import { HubError } from '../client/hub-error.js';
import { hubOf } from '../client/hub-of-process.js';
import * as check from './check-event.js';
import type { EventReceivers } from './check-event.js';
import { EventHandlers } from './event-handlers.js';
import { ClusterRequestError } from './events.errors.js';

/** Options of `request()`. */
export interface ClusterRequestOptions {
  /** The worker that answers: any one worker, or the worker of a slot. Default: `one`. */
  readonly to?: 'one' | number | undefined;
  /** How long to wait for the answer, 0..2^31-1 ms. Default: 5,000. */
  readonly deadlineMs?: number | undefined;
}

/** Maximum time without a message from the hub while it waits for slow receivers, in ms. A hung hub is ended earlier. */
const EMIT_MS = 30_000;
const START_MS = 3_000;

/**
 * Events of `@nestjs/event-emitter` that also reach the `@OnEvent()` methods of other workers. Each
 * event reaches a worker at most once, and the events of one sender arrive in order. Payloads are
 * copied as by `structuredClone()`. Provide this class in each module that injects it. All
 * instances in an app act as one.
 */
@Injectable()
export class ClusterEvents
  implements OnModuleInit, OnApplicationBootstrap, BeforeApplicationShutdown, OnApplicationShutdown
{
  readonly #closing = new AbortController();
  #found: HubClient | undefined;
  #handlers: EventHandlers | undefined;

  #emitter!: EventEmitter2;
  #methods!: EventEmitterReadinessWatcher;

  constructor(@Inject(ModuleRef) private readonly modules: ModuleRef) {
    setMaxListeners(0, this.#closing.signal); // one listener for each request
  }

  /** @throws ClusterConfigurationError without `EventEmitterModule`. */
  async onModuleInit(): Promise<void> {
    try {
      const emitters = await import('@nestjs/event-emitter');
      this.#emitter = this.modules.get(emitters.EventEmitter2, { strict: false });
      this.#methods = this.modules.get(emitters.EventEmitterReadinessWatcher, { strict: false });
    } catch (cause) {
      const error = new ClusterConfigurationError(
        'ClusterEvents found no EventEmitterModule of @nestjs/event-emitter; install that package, and add EventEmitterModule.forRoot() to the imports',
        { cause },
      );
      await extension()?.refuseStart(error);
      throw error;
    }
    await this.#hub.ready(START_MS);
  }

  /** Must not await the `@OnEvent()` methods: they are registered in this same hook, perhaps after this call. */
  onApplicationBootstrap(): void {
    const hub = this.#hub;
    if (hub.emitters.has(this.#emitter)) return;
    hub.emitters.add(this.#emitter);
    const handlers = new EventHandlers(hub, this.#emitter);
    extension()?.onDrainTasks((before) => handlers.hasBegunBefore(before));
    void this.#methods.waitUntilReady().then(() => {
      handlers.join();
      this.#handlers = handlers;
    });
  }

  /** The `@OnEvent()` methods still listen in this hook, so calls that have begun are answered. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#handlers?.leave();
  }

  onApplicationShutdown(): void {
    this.#closing.abort();
  }

  /**
   * Sends an event. Resolves when no receiver is far behind, or after some seconds. So a sender
   * that awaits `emit()` sends no faster than the receivers read.
   *
   * @returns the number of workers that the event was sent to; 0 if the hub does not answer.
   * @throws ClusterUncloneableError for a payload that cannot be sent, ClusterConfigurationError
   * for a wrong name or wrong receivers.
   */
  async emit(name: string, payload?: unknown, to: EventReceivers = 'all'): Promise<number> {
    validate(check.receiversSchema, to, 'receivers of emit()');
    const body = check.encodeEvent(name, payload);
    const question = { op: 'publish', name, to } as const;
    try {
      const answer = await this.#hub.askUntil(question, EMIT_MS, { body, whileHeard: true });
      // Without an answer it is unknown whether the event was sent.
      if (answer === undefined) this.#hub.noteOutcome('publish', 'timeout');
      else return this.#sentTo(answer, to);
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      this.#hub.noteOutcome('events', 'dropped');
    }
    return 0;
  }

  /**
   * Asks one worker. The answer is the result of the worker's first `@OnEvent()` method.
   *
   * @throws ClusterRequestError without an answer in time, or if the method fails;
   * ClusterConfigurationError for wrong options or a wrong name; ClusterUncloneableError for a
   * payload that cannot be sent.
   */
  async request<T>(name: string, payload?: unknown, options?: ClusterRequestOptions): Promise<T> {
    const { to, deadlineMs } = validate(check.requestSchema, options ?? {}, 'options of request()');
    const failed = (why: string) => new ClusterRequestError(name, why);
    const { signal } = this.#closing;
    if (signal.aborted) throw failed('this app is closed');
    const body = check.encodeEvent(name, payload);
    const question = { op: 'publish', name, to, request: true } as const;
    const asked = this.#hub.askUntil(question, Math.max(1, deadlineMs), { body, signal });
    const answer = await asked.catch((error: Error) => {
      this.#hub.noteOutcome('events', 'dropped');
      throw failed(error.message);
    });
    if (signal.aborted) throw failed('this app is closed');
    if (answer === undefined) throw failed(`there was no answer within ${deadlineMs} ms`);
    if (answer.header.t !== 'reply') {
      this.#sentTo(answer, to);
      throw failed('there is no such worker, or it reads too slowly');
    }
    const value: unknown = deserialize(answer.body);
    if (answer.header.failed) throw failed(String(value));
    return value as T;
  }

  get #hub(): HubClient {
    return (this.#found ??= hubOf());
  }

  /** Counts the workers that missed the event. @throws ClusterConfigurationError */
  #sentTo({ header }: Answer, to: EventReceivers): number {
    const { changed, evicted } = header.t === 'done' ? header : { changed: 0, evicted: 0 };
    if (evicted > 0) this.#hub.noteOutcome('events', 'dropped', evicted);
    if (changed + evicted === 0) check.checkSlotOf(to);
    return changed;
  }
}
