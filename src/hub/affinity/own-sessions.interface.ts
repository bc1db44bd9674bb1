import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** What serves the sessions of this worker. */
export interface OwnSessions {
  request(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Has the request of a session that waits for its answer get one, without loss: the worker that relays it leaves. */
  release(request: IncomingMessage): void;
}
