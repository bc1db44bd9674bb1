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
import { extension } from 'nestjs-cluster/extension';
import * as v from 'valibot';
import { type Answer, type HubClient, orNone } from '../client/hub-client.js';
import { hubOf } from '../client/hub-of-process.js';
import { ClusterRequestError } from '../errors.js';
import { durationMs, encode, integer, messageOf, text, validate } from '../options.js';
import { MAX_TEXT_LENGTH } from '../wire/protocol.js';
import { EventHandlers } from './event-handlers.js';

/** The receivers of an event: all workers, all workers except the sender, any one worker, or the worker of a slot. */
export type EventReceivers = 'all' | 'others' | 'one' | number;

/** Options of `request()`. */
export interface ClusterRequestOptions {
  /** The worker that answers: any worker (`one`, the default), or the worker of a slot. */
  readonly to?: 'one' | number | undefined;
  /** How long to wait for the answer, 0..2^31-1 ms. Default: 5,000. */
  readonly deadlineMs?: number | undefined;
}

const EMIT_MS = 5_000;
const START_MS = 3_000;

/** nestjs-cluster refuses more than 256 workers. */
const slotSchema = integer(0, 255);
const nameSchema = text(MAX_TEXT_LENGTH);

const receivers = <const T extends string>(...names: T[]) =>
  v.custom<T | number>(
    (to) => names.includes(to as T) || v.is(slotSchema, to),
    `${names.map((each) => `'${each}'`).join(', ')} or a slot number`,
  );

const receiversSchema = receivers('all', 'others', 'one');

const requestSchema = v.strictObject({
  to: v.optional(receivers('one'), 'one'),
  deadlineMs: v.optional(durationMs(), 5_000),
});

/**
 * Events of `@nestjs/event-emitter` that also reach the `@OnEvent()` methods of other workers. Each
 * event reaches a worker at most once, and one sender's events arrive in order. Payloads are copied
 * as if by `structuredClone()`. Provide this class in each module that injects it. All instances in
 * an app share one subscription.
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
        'ClusterEvents found no EventEmitterModule from @nestjs/event-emitter; install that package and add EventEmitterModule.forRoot() to imports',
        { cause },
      );
      await extension()?.refuseStart(error);
      throw error;
    }
    await this.#hub.ready(START_MS);
  }

  /** Must not wait for the `@OnEvent()` methods: this same hook registers them, possibly after this call. */
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

  /** The `@OnEvent()` methods still listen during this hook, so pending calls are answered. */
  async beforeApplicationShutdown(): Promise<void> {
    await this.#handlers?.leave();
  }

  onApplicationShutdown(): void {
    this.#closing.abort();
  }

  /**
   * Sends an event. A worker with more than 8 MiB of unread events misses it.
   *
   * @returns the number of workers that the event was sent to; 0 if the hub does not answer.
   * @throws ClusterSharedError for a payload that cannot be sent, ClusterConfigurationError for a
   * wrong name or wrong receivers.
   */
  async emit(name: string, payload?: unknown, to: EventReceivers = 'all'): Promise<number> {
    validate(receiversSchema, to, 'receivers of emit()');
    const body = encodeEvent(name, payload);
    const asked = this.#hub.ask({ op: 'publish', name, to }, EMIT_MS, { body });
    const answer = await orNone(asked);
    return answer === undefined ? 0 : this.#sentTo(answer, to);
  }

  /**
   * Sends a request to one worker. The result of its first `@OnEvent()` method is the answer.
   *
   * @throws ClusterRequestError if no answer arrives in time or the method fails;
   *   ClusterConfigurationError for wrong options or a wrong name; ClusterSharedError for a payload
   *   that cannot be sent.
   */
  async request<T>(name: string, payload?: unknown, options?: ClusterRequestOptions): Promise<T> {
    const { to, deadlineMs } = validate(requestSchema, options ?? {}, 'options of request()');
    const failed = (why: string) => new ClusterRequestError(name, why);
    const { signal } = this.#closing;
    if (signal.aborted) throw failed('this app was closed');
    const body = encodeEvent(name, payload);
    const question = { op: 'publish', name, to, request: true } as const;
    const asked = this.#hub.ask(question, Math.max(1, deadlineMs), { body, signal });
    const answer = await asked.catch((error: unknown) => {
      throw failed(signal.aborted ? 'this app was closed' : messageOf(error));
    });
    if (answer.header.t !== 'reply') {
      this.#sentTo(answer, to);
      throw failed('the worker does not exist or is reading too slowly');
    }
    const value: unknown = deserialize(answer.body);
    if (answer.header.failed) throw failed(String(value));
    return value as T;
  }

  get #hub(): HubClient {
    return (this.#found ??= hubOf());
  }

  /** @throws ClusterConfigurationError if no worker received the event because the cluster has no such slot. */
  #sentTo({ header }: Answer, to: EventReceivers): number {
    const { changed, missed = 0 } = header.t === 'done' ? header : { changed: 0 };
    if (missed > 0) this.#hub.noteOutcome('publish', 'missed', missed);
    const workers = extension()?.workers ?? Infinity;
    if (changed + missed > 0 || typeof to !== 'number' || to < workers) return changed;
    throw new ClusterConfigurationError(
      `ClusterEvents cannot reach slot ${to}: the last slot is ${workers - 1}`,
    );
  }
}

/** @throws ClusterConfigurationError for a wrong name, ClusterSharedError for the payload. */
function encodeEvent(name: string, payload: unknown): Buffer {
  validate(nameSchema, name, 'name of an event');
  return encode(`the payload of the event '${name}'`, payload);
}
