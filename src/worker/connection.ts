import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { endEventStream, isOpenEventStream } from './event-stream.js';
import { sayGoingAway } from './web-socket.js';

export const CONNECTION = Symbol('nestjs-cluster.connection');

export type TrackedSocket = Socket & { [CONNECTION]?: Connection };

/** The socket below TLS: set by Node 20 to 26, and not documented. */
export type SecureSocket = TrackedSocket & { readonly _parent?: TrackedSocket };

/** Who is told when a connection closes. */
export interface ConnectionOwner {
  forget(connection: Connection): void;
}

/** What is known of an open connection. Kept on its socket: no lookup on the request path. */
export class Connection {
  /** Requests begun and not answered. More than one only with pipelining. */
  inFlight = 0;
  /** When the oldest request in flight began, monotonic ms. */
  startedAt = 0;
  /** The same of those behind it: responses leave in the order of their requests. */
  pipelined: number[] | undefined;
  /** Of the youngest request in flight, for the drain to mark. */
  response: ServerResponse | undefined;
  webSocket = false;
  /** Before the answer to the upgrade: until that is written it is HTTP still. */
  #bytesBeforeUpgrade = 0;
  /** The drain has asked the peer of the WebSocket to close. */
  #saidGoodbye = false;

  constructor(
    readonly owner: ConnectionOwner,
    /** With TLS first the bare socket, then the one that HTTP speaks on. */
    public socket: TrackedSocket,
  ) {}

  becomesWebSocket(): void {
    this.webSocket = true;
    this.#bytesBeforeUpgrade = this.socket.bytesWritten;
  }

  /** Asks what has no end of its own to end; called again, it does nothing more. */
  endEndless(): void {
    const { webSocket, socket, response } = this;
    const open = webSocket && socket.bytesWritten > this.#bytesBeforeUpgrade;
    if (open && !this.#saidGoodbye) {
      this.#saidGoodbye = true;
      sayGoingAway(socket);
    }
    if (response !== undefined && isOpenEventStream(response)) {
      endEventStream(response, () => socket.end());
    }
  }
}
