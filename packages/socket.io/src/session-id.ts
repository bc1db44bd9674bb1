import { randomBytes } from 'node:crypto';

/** The form of a session id. It begins with its owner: digits that are new for each worker, and the slot. */
const SESSION_ID = /^([\da-f]{8}\.\d{1,4})\.[\w-]{20}$/;

/** The name of a worker as the owner of sessions. */
export function newOwner(slot: number): string {
  return `${randomBytes(4).toString('hex')}.${slot}`;
}

/** The random part is as long as in Engine.IO's ids, because it alone authenticates the client. */
export function newSessionId(owner: string): string {
  return `${owner}.${randomBytes(15).toString('base64url')}`;
}

/** @returns `undefined` if the client's text is not a session id of this package. */
export function ownerOf(sid: unknown): string | undefined {
  return typeof sid === 'string' ? SESSION_ID.exec(sid)?.[1] : undefined;
}
