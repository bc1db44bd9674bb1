import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

export type EngineRequest = IncomingMessage & { _query?: Readonly<Record<string, unknown>> };

/** A client of Engine.IO. */
export interface EngineClient {
  readonly transport: {
    readonly name: string;
    /** Of one that polls: a poll waits for its answer. */
    readonly writable: boolean;
    /** Of one that polls: how long its next poll is waited for, to be told of the end. In ms. */
    closeTimeout?: number;
    send(packets: readonly { readonly type: string }[]): void;
  };
  /** @param discard what has not been sent yet. */
  close(discard?: boolean): void;
  /** Once it is closed, what it has sent behind this packet is not read. */
  on(
    event: 'packet',
    listener: (packet: { readonly type: string; readonly data?: unknown }) => void,
  ): void;
}

/** What is used of the server of Engine.IO. */
export interface Engine {
  readonly clients: Readonly<Record<string, EngineClient>>;
  prepare(request: EngineRequest): void;
  handleRequest(request: EngineRequest, response: ServerResponse): void;
  handleUpgrade(request: EngineRequest, socket: Duplex, head: Buffer): void;
  generateId(request: EngineRequest): string | Promise<string>;
  on(event: 'connection', listener: (client: EngineClient) => void): void;
}
