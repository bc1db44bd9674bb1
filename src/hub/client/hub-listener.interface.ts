import type { FromHub } from '../wire/protocol.js';

export type EventPush = Extract<FromHub, { t: 'event' }>;
export type ChannelPush = Extract<FromHub, { t: 'said' | 'left' | 'echo' }>;

/** What a part of this process hears of the hub. */
export interface HubListener {
  /** @param anew another hub, which knows nothing of what was asked of the one before. */
  opened?(anew: boolean): void;
  closed?(): void;
  /** The hub reads again: something could not be sent before. */
  drained?(): void;
  pushed?(event: EventPush, body: Buffer): void;
  heard?(push: ChannelPush, body: Buffer): void;
}
