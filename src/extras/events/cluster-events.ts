import { deserialize } from 'node:v8';
import {
  Inject,
  Injectable,
  Logger,
  type OnApplicationShutdown,
  type OnModuleInit,
} from '@nestjs/common';
import { EventEmitter2 } from '@nestjs/event-emitter';
import { currentLink } from '../../bootstrap/current-link.js';
import { ClusterConfigurationError, oneLine } from '../../errors/index.js';
import { type HubClient, HubError, type Push } from '../../hub/client/hub-client.js';
import { hubOf } from '../../hub/client/hub-of-process.js';
import { encodePayload } from './encode-payload.js';
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
const MAX_DEADLINE_MS = 2 ** 31 - 1;

type Settle = (failure: string | undefined, value?: unknown) => void;

/**
 * Events of @nestjs/event-emitter that reach the `@OnEvent()` methods of other workers, too. Each
 * reaches a worker at most once, those of one sender in their order. Payloads are copied as
 * `structuredClone()` would. Provide it where it is injected; several of one app are one to others.
 */
@Injectable()
export class ClusterEvents implements OnModuleInit, OnApplicationShutdown {
  readonly #logger = new Logger('ClusterEvents');
  readonly #asked = new Map<number, Settle>();
  #hub: HubClient | undefined;
  #end: (() => void) | undefined;

  constructor(@Inject(EventEmitter2) private readonly emitter: EventEmitter2) {}

  async onModuleInit(): Promise<void> {
    const hub = (this.#hub = hubOf(currentLink()));
    const subscribe = (): void => void this.#ask({ op: 'subscribe' });
    const first = !hub.heardOn.has(this.emitter);
    if (first) hub.heardOn.add(this.emitter);
    const unlisten = hub.listen({
      opened: subscribe,
      pushed: (push, body) => {
        if (push.t === 'reply') this.#take(push, body);
        else if (first) this.#hear(push, body);
      },
    });
    this.#end = () => {
      unlisten();
      if (first) hub.heardOn.delete(this.emitter);
    };
    if (await hub.ready(START_MS)) subscribe();
  }

  onApplicationShutdown(): void {
    this.#end?.();
    for (const settle of this.#asked.values()) settle('this app is closed');
  }

  /** @returns to how many workers it was sent; 0 where the hub does not answer. */
  async emit(name: string, payload?: unknown, to: EventReceivers = 'all'): Promise<number> {
    return this.#publish(name, payload, to);
  }

  /**
   * Has one worker answer: with what the first of its `@OnEvent()` methods returns.
   *
   * @throws ClusterRequestError where nobody answers in time, or the one who answers fails;
   * ClusterConfigurationError for a deadline that cannot be; UncloneableValueError for such a payload.
   */
  async request<T>(
    name: string,
    payload?: unknown,
    { to = 'one', deadlineMs = REQUEST_MS }: ClusterRequestOptions = {},
  ): Promise<T> {
    if (!(deadlineMs >= 0 && deadlineMs <= MAX_DEADLINE_MS)) {
      throw new ClusterConfigurationError(
        `deadlineMs of a request is ${deadlineMs}; it is a number of milliseconds from 0 to ${MAX_DEADLINE_MS}`,
      );
    }
    const hub = this.#hub;
    if (hub === undefined) throw new ClusterRequestError(name, 'this app has not started yet');
    const request = (hub.lastRequest += 1);
    return new Promise<T>((resolve, reject) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#asked.delete(request);
      };
      const settle: Settle = (failure, value) => {
        end();
        if (failure === undefined) resolve(value as T);
        else reject(new ClusterRequestError(name, failure));
      };
      const timer = setTimeout(settle, deadlineMs, `there was no answer within ${deadlineMs} ms`);
      this.#asked.set(request, settle);
      this.#publish(name, payload, to, request).then(
        (sent) =>
          sent > 0 ||
          settle('there is no such worker, it reads too slowly, or the hub does not answer'),
        (error: unknown) => {
          end();
          reject(error as Error);
        },
      );
    });
  }

  async #publish(
    name: string,
    payload: unknown,
    to: EventReceivers,
    request?: number,
  ): Promise<number> {
    const question = { op: 'publish', name, form: 'v', to, request } as const;
    const body = encodePayload(`the payload of the event '${name}'`, payload);
    const header = await this.#ask(question, body);
    const dropped = header?.t === 'done' ? header.evicted : 1;
    if (dropped > 0) this.#hub?.noteOutcome('events', 'dropped', dropped);
    return header?.t === 'done' ? header.changed : 0;
  }

  async #ask(question: Parameters<HubClient['ask']>[0], body?: Buffer) {
    try {
      return (await this.#hub?.ask(question, DEADLINE_MS, body))?.header;
    } catch (error) {
      if (error instanceof HubError) return undefined;
      throw error;
    }
  }

  #take({ request, failed }: Extract<Push, { t: 'reply' }>, body: Buffer): void {
    const settle = this.#asked.get(request);
    if (settle === undefined) return;
    const value: unknown = deserialize(body);
    settle(failed ? String(value) : undefined, value);
  }

  #hear({ name, from, request }: Extract<Push, { t: 'event' }>, body: Buffer): void {
    const value: unknown = deserialize(body);
    if (request !== undefined) return void this.#reply(name, value, { to: from, request });
    try {
      this.emitter.emit(name, value);
    } catch (error) {
      // Its sender has nothing to do with it, and the connection to the hub must not end by it.
      const { message, stack } = error instanceof Error ? error : new Error(String(error));
      this.#logger.error(oneLine(`a listener of the event '${name}' threw: ${message}`), stack);
    }
  }

  async #reply(name: string, payload: unknown, to: { to: number; request: number }): Promise<void> {
    const reply = (failed: boolean, value: unknown): void => {
      const body = encodePayload('the answer', value);
      this.#hub?.tell({ op: 'reply', ...to, form: 'v', failed }, body);
    };
    if (!this.emitter.hasListeners(name)) return reply(true, 'nobody listens to it there');
    try {
      reply(false, (await this.emitter.emitAsync(name, payload))[0]);
    } catch (error) {
      reply(true, error instanceof Error ? error.message : String(error));
    }
  }
}
