import { randomBytes } from 'node:crypto';

/** The form of a session id. It begins with the owner: a slot, and digits that are new for each worker. */
const OWNER = /^(\d{1,4}-[\da-f]{8})\.[\w-]{20}$/;

export function newOwner(slot: number): string {
  return `${slot}-${randomBytes(4).toString('hex')}`;
}

/** The random part is as long as in Engine.IO's ids, because it alone authenticates the client. */
export function newSessionId(owner: string): string {
  return `${owner}.${randomBytes(15).toString('base64url')}`;
}

/** @returns `undefined` if the client's text is not a session id of this package. */
export function ownerOf(sid: unknown): string | undefined {
  return typeof sid === 'string' ? OWNER.exec(sid)?.[1] : undefined;
}
