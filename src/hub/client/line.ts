import type { FromHub, ToHub } from '../wire/protocol.js';

/** A way to the hub, which opens itself again after each loss. */
export interface Line {
  /**
   * @returns whether it was sent: not while it is closed, or the hub is far behind with reading.
   * @throws Error with the limit, if it is too large.
   */
  send(header: ToHub, body?: Buffer): boolean;
}

export interface LineEvents {
  /** @param instance that of a hub that was started anew is another. */
  opened(instance: string): void;
  frame(header: FromHub, body: Buffer): void;
  closed(): void;
  /** There can be no hub now. It is tried again; `opened()` says when that succeeds. */
  unavailable(why: string): void;
  /** The hub reads again, after something could not be sent. */
  drained(): void;
}

export type Dial = (events: LineEvents) => Line;
