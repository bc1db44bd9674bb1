import type { FromHub } from '../../wire/protocol.js';

/** The connection of one worker. */
export interface Peer {
  slot: number;
  /** The worker does not read what it is sent. */
  readonly congested: boolean;
  /** Bytes that it has not read. */
  readonly unsentBytes: number;
  /** @param body may be a view: a peer that keeps it copies it. */
  send(header: FromHub, body?: Buffer): void;
}

/** Tells a peer that its request cannot be served. */
export function refuse(peer: Peer, { id }: { readonly id: number }, why: string): void {
  peer.send({ t: 'refused', id, why });
}
