import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

export type EngineRequest = IncomingMessage & { _query?: Readonly<Record<string, unknown>> };

export interface EngineClient {
  readonly transport: {
    readonly name: string;
    /** For a polling client: whether a poll waits for an answer. */
    readonly writable: boolean;
    /** For a polling client: how long `close()` waits for the client's next poll, in ms. */
    closeTimeout?: number;
    send(packets: readonly { readonly type: string }[]): void;
  };
  /** @param discard drops unsent packets. */
  close(discard?: boolean): void;
}

/** The part of Engine.IO's server that this package uses. */
export interface Engine {
  readonly clients: Readonly<Record<string, EngineClient>>;
  /** Sets the request's parsed query. */
  prepare(request: EngineRequest): void;
  handleRequest(request: EngineRequest, response: ServerResponse): void;
  handleUpgrade(request: EngineRequest, socket: Duplex, head: Buffer): void;
  generateId(request: EngineRequest): string | Promise<string>;
}
