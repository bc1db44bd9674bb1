import type { FromHub, HubRequest, ToHub } from '../wire/protocol.js';
import type { HubError } from './hub-error.js';

/** A connection to the hub. After a loss it opens itself again. */
export interface Line {
  /**
   * @returns whether the message was sent. It is not sent if the line is closed or the hub is slow.
   * @throws Error that names the maximum, if the message is larger than that.
   */
  send(header: ToHub, body?: Buffer): boolean;
}

export interface LineEvents {
  /** @param instance identifies the hub. It changes when the hub is restarted. */
  opened(instance: string): void;
  frame(header: FromHub, body: Buffer): void;
  closed(): void;
  /** Called when the hub cannot be used. The line retries, and calls `opened()` at success. */
  unavailable(why: string): void;
  /** Called when the hub reads again after a message could not be sent. */
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
  /** Ends the wait early. */
  readonly signal?: AbortSignal;
  /** Whether each message of the hub restarts the wait, because many messages may come before the answer. */
  readonly whileHeard?: boolean;
}

/** The part of `EventEmitter2` that the hub's client needs. */
export interface Emitter {
  listeners(event: string): readonly unknown[];
}

/** A question that has no answer yet. */
export interface Pending {
  readonly op: HubRequest['op'];
  readonly resolve: (answer: Answer | undefined) => void;
  readonly reject: (error: HubError) => void;
  timer: NodeJS.Timeout | undefined;
}

export type EventPush = Extract<FromHub, { t: 'event' }>;
export type ChannelPush = Extract<FromHub, { t: 'said' | 'left' | 'echo' }>;

/** A part of this process that uses the hub. */
export interface HubListener {
  /** @param anew whether this is another hub, without the state of the former hub. */
  opened?(anew: boolean): void;
  closed?(): void;
  /** Called when the hub reads again after a message could not be sent. */
  drained?(): void;
  pushed?(event: EventPush, body: Buffer): void;
  heard?(push: ChannelPush, body: Buffer): void;
}
