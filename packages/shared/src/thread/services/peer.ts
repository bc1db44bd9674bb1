import type { FromHub } from '../../wire/protocol.js';

/** A worker with more unread bytes than this is sent no events and no messages. */
export const MAX_BACKLOG_BYTES = 8 * 1024 * 1024;

/** The connection of one worker. */
export interface Peer {
  slot: number;
  /** Whether the worker reads too slowly. */
  readonly congested: boolean;
  /** The number of bytes that the worker has not read. */
  readonly unsentBytes: number;
  /** @param body may be a view of reused memory, so a peer copies a body that it keeps. */
  send(header: FromHub, body?: Buffer): void;
}

/** Tells a peer that its request cannot be served. */
export function refuse(peer: Peer, { id }: { readonly id: number }, why: string): void {
  peer.send({ t: 'refused', id, why });
}
