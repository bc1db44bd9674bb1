import { randomBytes } from 'node:crypto';

/** A worker's own part of its session ids: its slot, and what no other worker has, of any generation. */
const OWNER = /^(\d{1,4}-[\da-f]{8})\.[\w-]{20}$/;

export function newOwner(slot: number): string {
  return `${slot}-${randomBytes(4).toString('hex')}`;
}

/** As long as Engine.IO makes them behind its owner: it is all that a client is known by. */
export function newSessionId(owner: string): string {
  return `${owner}.${randomBytes(15).toString('base64url')}`;
}

/** @returns `undefined` for whatever a client has sent that is no session id of ours. */
export function ownerOf(sid: unknown): string | undefined {
  return typeof sid === 'string' ? OWNER.exec(sid)?.[1] : undefined;
}
