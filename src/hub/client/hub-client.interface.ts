import type { FromHub, HubRequest, ToHub } from '../wire/protocol.js';
import type { HubError } from './hub-error.js';

/** A connection to the hub, which opens itself again after each loss. */
export interface Line {
  /**
   * @returns whether it was sent: not while the line is closed, or the hub is far behind with reading.
   * @throws Error with the limit, if it is too large.
   */
  send(header: ToHub, body?: Buffer): boolean;
}

export interface LineEvents {
  /** @param instance a hub that was started anew has another one. */
  opened(instance: string): void;
  frame(header: FromHub, body: Buffer): void;
  closed(): void;
  /** A hub is impossible now. The line tries again; `opened()` says when it succeeds. */
  unavailable(why: string): void;
  /** The hub reads again, after something could not be sent. */
  drained(): void;
}

export type Dial = (events: LineEvents) => Line;

export interface Answer {
  readonly header: FromHub;
  readonly body: Buffer;
}

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;
export type Question = WithoutId<Exclude<HubRequest, { op: 'hello' }>>;

/** Options of `askUntil()`. */
export interface AskOptions {
  readonly body?: Buffer;
  /** Ends the wait earlier. */
  readonly signal?: AbortSignal;
  /** The wait begins anew with each message: the answer may lie behind many. */
  readonly whileHeard?: boolean;
}

/** What is needed of an `EventEmitter2`. */
export interface Emitter {
  listeners(event: string): readonly unknown[];
}

/** A question that has no answer yet. */
export interface Pending {
  readonly op: HubRequest['op'];
  readonly settle: (answer: Answer | HubError) => void;
  readonly timer: NodeJS.Timeout | undefined;
}

export type EventPush = Extract<FromHub, { t: 'event' }>;
export type ChannelPush = Extract<FromHub, { t: 'said' | 'left' | 'echo' }>;

/** A part of this process that uses the hub. */
export interface HubListener {
  /** @param anew whether it is another hub, which has forgotten everything. */
  opened?(anew: boolean): void;
  closed?(): void;
  /** The hub reads again, after something could not be sent. */
  drained?(): void;
  pushed?(event: EventPush, body: Buffer): void;
  heard?(push: ChannelPush, body: Buffer): void;
}
